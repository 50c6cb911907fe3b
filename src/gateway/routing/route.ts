import type { Alias } from '../model.ts'
import type { Candidate } from './candidate.ts'
import type { CredentialCondition, ModelCondition } from './condition.ts'
import { WeightedPick } from './pick.ts'

/** A candidate with what its availability is read from. */
export interface Routed extends Candidate {
  readonly group: string | undefined
  readonly condition: CredentialCondition
  readonly modelCondition: ModelCondition
  /** Its name, as asked or upstream, is one that nobody may use. */
  readonly isBlocked: boolean
}

/** A name as it is routed for one scope: made once, used by every request. */
export interface Route {
  readonly alias: Alias | undefined
  readonly all: readonly Routed[]
  /** In the order in which they are tried: the asked name's before those of fallback names. */
  readonly tiers: readonly WeightedPick<Routed>[]
  /** Left out for their name. */
  readonly blocked: readonly Routed[]
}

/** Where the shared sequence of picks of a set of choices stands. @param signature the same for the same set */
export type SequenceOf = (signature: string, choices: readonly Routed[]) => Float64Array<ArrayBuffer>

/** Puts candidates that serve the same name into tiers: ring, then priority; in a tier the lowest id wins ties. */
export function tiersOf(candidates: readonly Routed[], sequenceOf: SequenceOf): WeightedPick<Routed>[] {
  const tiers = new Map<number, Routed[]>()
  for (const each of candidates) {
    const rank = each.ring * 1000 + each.priority
    const tier = tiers.get(rank)
    if (tier) tier.push(each)
    else tiers.set(rank, [each])
  }
  return [...tiers.keys()]
    .sort((a, b) => a - b)
    .map((rank) => {
      const choices = (tiers.get(rank) ?? []).sort((a, b) => idOf(a) - idOf(b))
      return new WeightedPick(choices, sequenceOf(signatureOf(choices), choices))
    })
}

const idOf = ({ upstream }: Routed): number => upstream.credential.id

const signatureOf = (choices: readonly Routed[]): string =>
  choices.map((each) => `${idOf(each)}/${each.model}*${each.weight}`).join('\n')
