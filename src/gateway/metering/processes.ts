import { randomUUID } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import { errorText } from '../../base/errors.ts'
import type { Database, Queryable } from '../../database/database.ts'
import type { Logger } from '../../platform/ports.ts'
import { Ticker } from '../state/ticker.ts'
import { lockTallies, returnBlocksOf } from '../store/budgets.ts'
import { countProcesses, deleteProcess, holdUnseen, listProcessesBefore, touchProcess } from '../store/processes.ts'

const BEAT_MS = 5000
/** Whoever was not seen for so long counts no more. */
const SEEN_MS = 15_000
/** Whoever was not seen for so long is dead: what it holds goes back. */
const DEAD_MS = 60_000
/** So long a process may use what it holds without having been seen: less than others wait. */
const LEASE_MS = 50_000

/** The servers over one database, by their heartbeats: how many live, and what the dead held. Contract: gateway.md 4.6, 7.3. */
export class Processes {
  readonly id = randomUUID()
  readonly #database: Database
  readonly #clock: Clock
  readonly #log: Logger
  readonly #ticker: Ticker
  #live = 1
  #leaseEnd = 0
  #beating: Promise<void> | undefined
  #renewing: Promise<void> | undefined
  readonly #whenLost: (() => void)[] = []
  readonly #afterBeat: (() => Promise<void>)[] = []

  constructor(database: Database, clock: Clock, log: Logger) {
    this.#database = database
    this.#clock = clock
    this.#log = log
    this.#ticker = new Ticker('telling that this process lives', BEAT_MS, () => this.beat(), log)
  }

  /** Those that live, this one included. */
  count(): number {
    return this.#live
  }

  /** Called when others took this process for dead: what it held is gone. */
  onLost(listener: () => void): void {
    this.#whenLost.push(listener)
  }

  /** Called after each heartbeat. */
  onBeat(listener: () => Promise<void>): void {
    this.#afterBeat.push(listener)
  }

  /** Whether what this process holds is still its own. */
  holds(now: number): boolean {
    return now < this.#leaseEnd
  }

  /** A store that is not there yet, or away, is tried again; until then nothing can be held. */
  async start(): Promise<void> {
    await this.beat().catch((error: unknown) => {
      this.#log.warn({ reason: errorText(error) }, 'this process cannot tell yet that it lives')
    })
    this.#ticker.start()
  }

  /** Tells that this process lives, and looks after the others. @throws when the database does not answer */
  beat(): Promise<void> {
    this.#beating ??= this.#beat().finally(() => (this.#beating = undefined))
    return this.#beating
  }

  /** Tells that this process lives, and nothing else: what a budget waits for must not wait for it. @throws as `beat` */
  renew(): Promise<void> {
    this.#renewing ??= this.#renew().finally(() => (this.#renewing = undefined))
    return this.#renewing
  }

  /** What this process holds goes back; where the database does not answer any more, others give it back as of one that died. */
  async close(): Promise<void> {
    await this.#ticker.close()
    await this.#beating?.catch(() => undefined)
    await this.#renewing?.catch(() => undefined)
    const wasSeen = this.#leaseEnd > 0
    this.#leaseEnd = 0
    if (!wasSeen) return
    await this.#database
      .transaction((tx) => end(tx, this.id))
      .catch((error: unknown) => {
        this.#log.warn({ reason: errorText(error) }, 'this process cannot tell that it ends')
      })
  }

  async #renew(): Promise<void> {
    const now = this.#clock.now()
    const wasKnown = await this.#database.transaction((tx) => touchProcess(tx, this.id, now))
    if (!wasKnown) for (const lost of this.#whenLost) lost()
    this.#leaseEnd = now + LEASE_MS
  }

  async #beat(): Promise<void> {
    await this.renew()
    const now = this.#clock.now()
    const dead = now - DEAD_MS
    for (const id of await listProcessesBefore(this.#database, dead)) await this.#endUnseen(id, dead)
    this.#live = Math.max(1, await countProcesses(this.#database, now - SEEN_MS))
    for (const follow of this.#afterBeat) await follow()
  }

  /** One that told meanwhile that it lives keeps what it holds. */
  #endUnseen(id: string, since: number): Promise<void> {
    return this.#database.transaction(async (tx) => {
      await lockTallies(tx)
      if (await holdUnseen(tx, id, since)) await end(tx, id)
    })
  }
}

async function end(tx: Queryable, id: string): Promise<void> {
  await returnBlocksOf(tx, id)
  await deleteProcess(tx, id)
}
