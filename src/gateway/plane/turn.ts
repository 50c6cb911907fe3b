import type { PlaneLog } from './parts.ts'

type Job = () => void

/**
 * So many calls begin before it is looked which answers have come: of 128 that arrive at once, none of their answers waits for
 * the last of them to begin. Some 3 ms of work.
 */
const ROW = 32

/**
 * What calls leave for the end of a turn of the event loop: all answers to clients, then a row of calls that begin, then all
 * that goes out to providers, then all records. A write wakes whoever sleeps over its connection, which costs more than the
 * write; those that follow at once find them awake (64 connections: a small call takes 15 % less). An answer takes less than a
 * call to begin, and somebody has waited for it longer; nobody waits for records. A call that is alone has nobody to go out
 * with, and does so at once (one connection: a small call is back 5 % sooner).
 */
export class Turn {
  readonly #log: PlaneLog
  readonly #isAlone: () => boolean
  #calls: Job[] = []
  #requests: Job[] = []
  #answers: Job[] = []
  #records: Job[] = []
  #isClosed = false
  #isEnding = false

  /** @param isAlone whether no more than one call is under way */
  constructor(log: PlaneLog, isAlone: () => boolean) {
    this.#log = log
    this.#isAlone = isAlone
  }

  /** A call is here whole. */
  call(job: Job): void {
    if (this.#isAlone()) return this.#do(job)
    this.#calls.push(job)
    this.#end()
  }

  request(job: Job): void {
    if (this.#isAlone()) return this.#do(job)
    this.#requests.push(job)
    this.#end()
  }

  answer(job: Job): void {
    if (this.#isAlone()) return this.#do(job)
    this.#answers.push(job)
    this.#end()
  }

  record(job: Job): void {
    this.#records.push(job)
    this.#end()
  }

  /** From now on nothing waits. */
  close(): void {
    this.#isClosed = true
    this.#work()
  }

  #end(): void {
    if (this.#isClosed) return this.#work()
    if (this.#isEnding) return
    this.#isEnding = true
    setImmediate(() => this.#work())
  }

  /** A job may leave another: of a later kind it is done in the same turn, else in the next. */
  #work(): void {
    this.#isEnding = false
    this.#doAll(this.#answers.splice(0))
    this.#doAll(this.#calls.splice(0, this.#isClosed ? Infinity : ROW))
    this.#doAll(this.#requests.splice(0))
    this.#doAll(this.#records.splice(0))
    if (this.#calls.length > 0) this.#end()
  }

  #doAll(jobs: readonly Job[]): void {
    for (const job of jobs) this.#do(job)
  }

  #do(job: Job): void {
    try {
      job()
    } catch (error) {
      this.#log.error({ err: error }, 'what a call left for the end of its turn failed')
    }
  }
}
