import { canonicalJson } from '../../base/canonical-json.ts'
import { sha256 } from '../../base/hash.ts'
import type { Change } from '../change.ts'
import { conflict, invalid } from '../errors.ts'
import type { Digested, Manifests } from '../model/definition.ts'
import type { Scope } from '../model/fields.ts'
import { insertDefinition, type Definition, type FamilyName } from '../store/definitions.ts'
import { readDefinition, type RegistryFamily } from './family.ts'

/** Of an agent's definition: `<scopeKind>/<scopeId>/<manifestId>`, also for one that is so already. */
export function scopedId({ kind, id }: Scope, manifestId: string): string {
  const prefix = `${kind}/${id}/`
  return manifestId.startsWith(prefix) ? manifestId : prefix + manifestId
}

/** @throws invalid when a manifest contradicts itself */
export function checkManifest<F extends FamilyName>(family: RegistryFamily<F>, manifest: Manifests[F]): void {
  const criteria = manifest.evaluations.map(({ id }) => id)
  const repeated = criteria.find((id, i) => criteria.indexOf(id) !== i)
  const flaw = repeated === undefined ? family.flaw(manifest) : `criterion ${repeated} is there twice`
  if (flaw !== undefined) throw invalid(flaw)
}

/** SHA-256 in hex of the RFC 8785 JSON of a definition without digest and createdAt. */
export const digestOf = (definition: Manifests[FamilyName] & Pick<Digested, 'scope'>): string =>
  sha256(canonicalJson(definition))

/**
 * Registers a version; `isNew` is false when it is there already.
 * @throws conflict when it is there with other content. Contract: kernel-1.md 11
 */
export async function registerDefinition<F extends FamilyName>(
  { tx, scope, at }: Change,
  family: F,
  manifest: Manifests[F],
): Promise<{ definition: Definition<F>; isNew: boolean }> {
  const digest = digestOf({ ...manifest, scope })
  const made: Definition<F> = { ...manifest, scope, digest, createdAt: at }
  if (await insertDefinition(tx, family, made)) return { definition: made, isNew: true }
  const definition = await readDefinition(tx, family, scope, made)
  if (definition.digest !== digest) {
    throw conflict(
      `${family} definition ${made.id} version ${made.version} exists with other content: use a new version`,
    )
  }
  return { definition, isNew: false }
}
