import type { OpenCredential } from '../state/organization-state.ts'
import { UpstreamAuthError, type RelayEdits } from './upstream.ts'

/** Where the paths of a provider begin. */
export interface Base {
  readonly origin: string
  /** Without a slash at its end. */
  readonly prefix: string
}

/** @throws UpstreamAuthError when it is no URL */
export function baseOf(text: string): Base {
  if (!URL.canParse(text)) throw new UpstreamAuthError('the address of the credential is no URL')
  const { origin, pathname } = new URL(text)
  return { origin, prefix: pathname.replace(/\/+$/, '') }
}

/** Made when it is first needed, and again as long as that fails: most credentials of a table are never called. */
export function lazily<T extends object>(make: () => T): () => T {
  let made: T | undefined
  return () => (made ??= make())
}

/** A text of the credential's `config`; empty when there is none. */
export function textOf({ config }: OpenCredential, name: string): string {
  const value = config[name]
  return typeof value === 'string' ? value : ''
}

/** A part of a host name, such as a region. @throws UpstreamAuthError when it would make another host of it */
export function labelOf(credential: OpenCredential, name: string): string {
  const label = textOf(credential, name)
  if (!/^[a-z0-9-]{1,63}$/.test(label)) throw new UpstreamAuthError(`the ${name} of the credential is none`)
  return label
}

export const NO_EDITS: RelayEdits = { drop: [], rename: {}, streamUsage: true, modelInBody: true }

/** A surface that no route leads here. */
export const unserved = (kind: string, surface: string): Error => new Error(`${kind} does not serve ${surface}`)
