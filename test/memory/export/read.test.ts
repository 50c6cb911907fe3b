import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sha256 } from '../../../src/base/hash.ts'
import { readChains, readExport } from '../../../src/memory/export/read.ts'
import { createPlace, exported, imported, piecesOf, within, type Place } from './place.ts'
import { live } from './story.ts'

let place: Place
/** An export without its end record; each line parsed. */
let lines: Record<string, unknown>[]
let whole: string

beforeAll(async () => {
  place = await createPlace()
  await within(place, (memory) =>
    live(memory, [
      { op: 'collection', text: 'books', which: 0 },
      { op: 'imprint', text: 'The keeper likes rye bread.', which: 0, tag: 'topic' },
      { op: 'imprint', text: 'The lamp is lit at dusk.', which: 1, tag: 'topic' },
      { op: 'imprint', text: 'Nobody needs to know.', which: 2, tag: 'topic' },
      { op: 'append', text: ' He bakes.', which: 0 },
      { op: 'link', which: 0, other: 1, text: 'why' },
      { op: 'forget', which: 2, redact: true },
    ]),
  )
  whole = await exported(place)
  lines = whole
    .trimEnd()
    .split('\n')
    .slice(0, -1)
    .map((line): Record<string, unknown> => JSON.parse(line))
})
afterAll(() => place.remove())

async function readAll(bytes: AsyncIterable<Uint8Array>, read: typeof readExport = readExport): Promise<void> {
  const entries = read(bytes)
  while (!(await entries.next()).done);
}

async function problemOf(text: string, read = readExport): Promise<string> {
  try {
    await readAll(piecesOf(text), read)
    return ''
  } catch (error) {
    return error instanceof Error ? error.message : ''
  }
}

const at = (type: string, n = 0): Record<string, unknown> => {
  const found = lines.filter((line) => line['type'] === type)[n]
  if (!found) throw new Error(`there is no ${type}`)
  return found
}

/** The export with another line, or without it, and an end record that fits. */
function forged(old: object, ...by: object[]): string {
  const text = lines
    .flatMap((line) => (line === old ? by : [line]))
    .map((line) => `${JSON.stringify(line)}\n`)
    .join('')
  const records = text.split('\n').length - 2
  return `${text}${JSON.stringify({ type: 'end', records, sha256: sha256(text) })}\n`
}

describe('an export that is read', () => {
  it('is taken as it was written', async () => {
    expect(await problemOf(whole)).toBe('')
    expect(await problemOf(whole, readChains)).toBe('')
    expect(forged({})).toBe(whole)
  })

  it('is known when it is cut off, wherever', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(whole.length - 2), async (length) => {
        for (const read of [readExport, readChains]) {
          expect(await problemOf(whole.slice(0, length), read)).toMatch(/cut off|not whole|is empty|no export of mem/)
        }
      }),
      { numRuns: 60 },
    )
  })

  it('is known when a byte is another one', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.nat(Buffer.byteLength(whole) - 2),
        fc.integer({ min: 1, max: 255 }),
        async (position, change) => {
          const bytes = Buffer.from(whole)
          bytes[position] = (bytes[position] ?? 0) ^ change
          const stream = async function* () {
            yield bytes
          }
          for (const read of [readExport, readChains]) await expect(readAll(stream(), read)).rejects.toThrow(/./)
        },
      ),
      { numRuns: 150 },
    )
  })

  it.each([
    ['nothing', () => '', /^it is empty/],
    ['an image', () => '\u0089PNG\r\n\u001a\n\0\0', /^it is no export of mem/],
    ['other JSON lines', () => '{"type":"entity","name":"x"}\n', /^it is no export of mem/],
    ['a newer format', () => whole.replace('"version":1', '"version":2'), /in version 2 of the format.*upgrade mem/],
    ['more behind the end', () => `${whole}{}\n`, /something follows the end record/],
    ['a broken line', () => whole.replace('{"type":"edge"', '{"type":edge"'), /^line \d+: it is no record/],
    ['a kind of record nobody knows', () => forged(at('edge'), { type: 'wish' }), /^line \d+: type/],
    [
      'a field too many',
      () => forged(at('edge'), { ...at('edge'), weight: 1 }),
      /^line \d+: weight is not a known field/,
    ],
    [
      'a field too few',
      () => forged(at('edge'), { ...at('edge'), edge_id: undefined }),
      /^line \d+: edge_id is required/,
    ],
    [
      'a time that is none',
      () => forged(at('edge'), { ...at('edge'), created_at: 'now' }),
      /^line \d+: created_at is not a time/,
    ],
    ['a missing record', () => forged(at('version', 1)), /the head of mem_.* is missing/],
    ['a missing Cell', () => forged(at('cell')), /has 0 Cells, not 1/],
    [
      'a body that was changed',
      () => forged(at('version'), { ...at('version'), content: 'Hm.' }),
      /^line \d+: the content is not what content_md5_after says/,
    ],
    [
      'a Cell that was changed',
      () => forged(at('cell'), { ...at('cell'), text: 'Hm.' }),
      /^line \d+: the text is not what text_md5 says/,
    ],
    [
      'a ledger entry that was changed',
      () => forged(at('ledger', 1), { ...at('ledger', 1), agent_id: 'agent_x' }),
      /ledger entry 2: a field was changed/,
    ],
    [
      'personal data that was changed',
      () => forged(at('ledger', 1), { ...at('ledger', 1), ip: '::1' }),
      /ledger entry 2: metadata, ip or user_agent was changed/,
    ],
    ['a gap in the ledger', () => forged(at('ledger', 1)), /ledger entry 3: entry 2 is missing/],
    [
      'a ledger without its end',
      () => forged(lines.findLast(({ type }) => type === 'ledger') ?? {}),
      /the ledger of ws_.* ends at entry/,
    ],
    [
      'a redaction nobody asked for',
      () => forged(at('ledger', 2), { ...at('ledger', 2), redacted_fields: ['metadata'] }),
      /redacted without a forget that asked for it/,
    ],
    [
      'records in another order',
      () => forged(at('edge'), at('edge'), at('collection')),
      /^line \d+: a collection cannot stand here/,
    ],
    [
      'a Memory of a missing collection',
      () => forged(at('memory'), { ...at('memory'), collection_id: 'coll_x' }),
      /its collection coll_x is not in the file/,
    ],
    ['a workspace twice', () => forged(at('workspace'), at('workspace'), at('workspace')), /stands there twice/],
    [
      'U+0000',
      () => forged(at('collection'), { ...at('collection'), name: 'a\0' }),
      /^line \d+: it is no record: .*U\+0000/,
    ],
  ])('is refused, and nothing is written: %s', async (_, make, message) => {
    const text = make()
    expect(await problemOf(text)).toMatch(message)
    const there = await createPlace()
    await expect(imported(there, text)).rejects.toThrow(message)
    const left = await within(there, async ({ service: { seams } }) =>
      Promise.all(
        ['workspace', 'chain', 'memory', 'memory_version', 'cell', 'cell_vector', 'edge', 'ledger', 'agent'].map(
          async (table) => (await seams.metadata.get<{ n: number }>(`SELECT count(*) AS n FROM ${table}`))?.n,
        ),
      ),
    )
    expect(left.every((n) => n === 0)).toBe(true)
    await there.remove()
  })
})
