import { randomInt } from 'node:crypto'
import type { Caller } from '../../memory/caller.ts'
import { CodedError } from '../../base/errors.ts'
import { invalidInput, notFound } from '../../memory/errors.ts'
import { CONFLICT_RULES, importMemory, importRecord } from '../../memory/import.ts'
import { parseWith, refuseBadText } from '../../memory/routes/route.ts'
import { imprintRequest, type ImprintRequest } from '../../memory/requests.ts'
import { findCollection } from '../../memory/store/collections.ts'
import { openWorkspace, type ActionRequest } from '../actions/action.ts'
import type { Console } from '../settings.ts'
import { progress, Stop } from './progress.ts'
import { readRecords } from './records.ts'
import { createReplay } from './replay.ts'
import { sampleText } from './samples.ts'

/** A run that was accepted: what is wrong with the request is thrown before it begins. */
export type BulkRun = (signal: AbortSignal) => AsyncGenerator<string>
export type BulkOperation = (console: Console, request: ActionRequest) => Promise<BulkRun>

const SEED_DEFAULT = 100
const SEED_MAX = 10_000

/** Each record is a request of its own: its time counts from its own begin. */
const callerFor = (caller: Caller, signal: AbortSignal): Caller => ({
  ...caller,
  startedAt: performance.now(),
  signal,
})

/** Imprints generated texts; the same `rand` gives the same ones. */
const seed: BulkOperation = async (console, request) => {
  const workspace = await openWorkspace(console, request)
  const { form, caller } = request
  const count = form.number('count') ?? SEED_DEFAULT
  if (!Number.isInteger(count) || count < 1 || count > SEED_MAX) {
    throw invalidInput(`count must be 1 to ${SEED_MAX}`, 'count')
  }
  const rand = form.number('rand') ?? randomInt(1_000_000)
  const fields = {
    collection_id: form.text('collection_id'),
    chunker_id: form.text('chunker_id'),
    auto_link: form.text('auto_link') === undefined ? undefined : form.flag('auto_link'),
  }
  const { collection_id: collection } = fields
  if (collection !== undefined && !(await findCollection(console.service.seams.metadata, workspace.id, collection))) {
    throw notFound('collection', collection)
  }
  const bodyOf = (index: number): ImprintRequest =>
    parseWith(imprintRequest, { ...fields, content: sampleText(rand, index), tags: { source: 'sample' } })
  bodyOf(0)
  const indexes = Array.from({ length: count }, (_, index) => index)
  return (signal) =>
    progress(indexes, signal, async (index) => {
      await console.service.imprint.run(callerFor(caller, signal), workspace, bodyOf(index))
      return 'succeeded'
    })
}

const importDump: BulkOperation = async (console, request) => {
  const workspace = await openWorkspace(console, request)
  const { form, caller } = request
  const asked = form.text('conflict') ?? 'skip'
  const rule = CONFLICT_RULES.find((name) => name === asked)
  if (!rule) throw invalidInput(`conflict must be one of ${CONFLICT_RULES.join(', ')}`, 'conflict')
  const records = readRecords(form)
  return (signal) =>
    progress(records, signal, async (raw) => {
      refuseBadText(raw)
      const record = parseWith(importRecord, raw)
      try {
        const outcome = await importMemory(console.service, callerFor(caller, signal), workspace, record, rule)
        return outcome === 'written' ? 'succeeded' : 'skipped'
      } catch (error) {
        if (rule === 'error' && error instanceof CodedError && error.code === 'already_exists') {
          throw new Stop(`${error.message}. The import stopped there.`)
        }
        throw error
      }
    })
}

const replay: BulkOperation = async (console, request) => {
  const workspace = await openWorkspace(console, request)
  const records = readRecords(request.form)
  return (signal) => {
    const apply = createReplay(console.service, workspace)
    return progress(records, signal, async (record) => {
      await apply(callerFor(request.caller, signal), record)
      return 'succeeded'
    })
  }
}

/** What runs over many records and tells how far it is. Contract: memory.md 14, Bulk. */
export const bulkOperations: Readonly<Record<string, BulkOperation>> = { seed, import: importDump, replay }
