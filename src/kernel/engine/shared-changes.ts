import { BY_KERNEL, makeChange, makeChanges, type Change } from '../change.ts'
import type { KernelContext } from '../context.ts'
import type { Scope } from '../model/fields.ts'

/** A change that waits for its transaction. */
interface Asked {
  /** Gives what tells of its end. */
  make: (change: Change) => Promise<() => void>
  alone: () => Promise<void>
}

/** Together they write what would be as many statements; more of them would wait for each other rather than save. */
const AT_ONCE = 16
/** One is at the database while the next is put together. */
const TRANSACTIONS = 2

/**
 * Changes that the workers of one scope make at the same time, several in a transaction: what they write goes to the database
 * together, and its events, leases and slots are one statement each. Where one fails, each is made by itself.
 */
export class SharedChanges {
  readonly #context: KernelContext
  readonly #scope: Scope
  readonly #asked: Asked[] = []
  #underWay = 0
  #isDue = false

  constructor(context: KernelContext, scope: Scope) {
    this.#context = context
    this.#scope = scope
  }

  /**
   * Like `makeChange`, by the kernel. `fn` may run twice, also after a commit whose answer was lost: what it writes names a revision
   * or a token, so that nothing is written twice. SQLite shares commits by itself.
   */
  make<T>(fn: (change: Change) => Promise<T>): Promise<T> {
    const alone = (): Promise<T> => makeChange(this.#context, this.#scope, BY_KERNEL, fn).then(({ result }) => result)
    if (this.#context.store.database.dialect === 'sqlite') return alone()
    return new Promise((resolve, reject) => {
      this.#asked.push({
        make: (change) => fn(change).then((result) => () => resolve(result)),
        alone: () => alone().then(resolve, reject),
      })
      this.#start()
    })
  }

  /** Soon: others may ask within the same turn of the event loop. */
  #start(): void {
    if (this.#isDue || this.#underWay === TRANSACTIONS || this.#asked.length === 0) return
    this.#isDue = true
    setImmediate(() => {
      this.#isDue = false
      this.#underWay++
      void this.#transact(this.#asked.splice(0, AT_ONCE))
      this.#start()
    })
  }

  async #transact(asked: readonly Asked[]): Promise<void> {
    const isShared = asked.length > 1 && (await this.#together(asked))
    if (!isShared) await Promise.all(asked.map((one) => one.alone()))
    this.#underWay--
    this.#start()
  }

  /** False where it failed: what is wrong comes up again, with the one that it is wrong with. */
  async #together(asked: readonly Asked[]): Promise<boolean> {
    try {
      const fns = asked.map(({ make }) => make)
      const made = await makeChanges(this.#context, this.#scope, BY_KERNEL, fns)
      for (const { result: tell } of made) tell()
      return true
    } catch {
      return false
    }
  }
}
