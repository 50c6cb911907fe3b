import { makeChange, makeChanges, type Attribution, type Change, type Changed } from './change.ts'
import type { KernelContext } from './context.ts'
import type { Scope } from './model/fields.ts'
import { scopeKey } from './store/scope-key.ts'

/** A change that waits for its transaction. */
interface Asked {
  by: Attribution
  /** Gives what tells of its end. */
  make: (change: Change) => Promise<(changed: Pick<Changed<unknown>, 'events'>) => void>
  alone: () => Promise<void>
}

/** Together they write what would be as many statements; more of them would wait for each other rather than save. */
const AT_ONCE = 16
/** Some are at the database while the next is put together. */
const TRANSACTIONS = 3

/**
 * Like `makeChange`, in one transaction with others of the scope that are asked for at the same time: what they write goes to the
 * database together, and their events, leases and slots are one statement each. Where one fails, each is made by itself. `fn` may run
 * twice, also after a commit whose answer was lost: what it writes names a revision, a token or an id, so that nothing is written
 * twice. SQLite shares commits by itself.
 */
export function makeShared<T>(
  context: KernelContext,
  scope: Scope,
  by: Attribution,
  fn: (change: Change) => Promise<T>,
): Promise<Changed<T>> {
  const alone = (): Promise<Changed<T>> => makeChange(context, scope, by, fn)
  if (context.store.database.dialect === 'sqlite') return alone()
  return new Promise((resolve, reject) => {
    queueOf(context, scope).add({
      by,
      make: (change) =>
        fn(change).then(
          (result) =>
            ({ events }) =>
              resolve({ result, events }),
        ),
      alone: () => alone().then(resolve, reject),
    })
  })
}

const queues = new WeakMap<KernelContext, Map<string, Queue>>()

function queueOf(context: KernelContext, scope: Scope): Queue {
  const ofContext = queues.get(context) ?? new Map<string, Queue>()
  queues.set(context, ofContext)
  const key = scopeKey(scope)
  const queue = ofContext.get(key) ?? new Queue(context, scope, () => ofContext.delete(key))
  ofContext.set(key, queue)
  return queue
}

/** Of one scope. */
class Queue {
  readonly #context: KernelContext
  readonly #scope: Scope
  readonly #onEmpty: () => void
  readonly #asked: Asked[] = []
  #underWay = 0
  #isDue = false

  constructor(context: KernelContext, scope: Scope, onEmpty: () => void) {
    this.#context = context
    this.#scope = scope
    this.#onEmpty = onEmpty
  }

  add(asked: Asked): void {
    this.#asked.push(asked)
    this.#start()
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
    if (this.#underWay === 0 && this.#asked.length === 0) this.#onEmpty()
    this.#start()
  }

  /** False where it failed: what is wrong comes up again, with the one that it is wrong with. */
  async #together(asked: readonly Asked[]): Promise<boolean> {
    try {
      const made = await makeChanges(
        this.#context,
        this.#scope,
        asked.map(({ by, make: fn }) => ({ by, fn })),
      )
      for (const { result: tell, events } of made) tell({ events })
      return true
    } catch {
      return false
    }
  }
}
