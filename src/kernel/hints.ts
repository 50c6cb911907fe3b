import type { Scope } from './model/fields.ts'
import { scopeKey } from './store/scope-key.ts'

type Listener = (scope: Scope) => void

/** Tells workers of this process that something may be due: for latency only, they look by themselves too. */
export class Hints {
  readonly #listeners = new Map<string, Set<Listener>>()

  readonly hint = (scope: Scope): void => {
    for (const listener of this.#listeners.get(scopeKey(scope)) ?? []) listener(scope)
  }

  /** Gives what ends it. */
  listen(scope: Scope, listener: Listener): () => void {
    const key = scopeKey(scope)
    const listeners = this.#listeners.get(key) ?? new Set()
    this.#listeners.set(key, listeners.add(listener))
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0) this.#listeners.delete(key)
    }
  }
}
