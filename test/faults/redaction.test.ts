import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { verifyChain } from '../../src/memory/ledger.ts'
import { findChain } from '../../src/memory/store/chains.ts'
import { randomSource } from '../memory/search/random-vectors.ts'
import type { RunningServer } from '../support/server.ts'
import { call, createWorkspace } from './http.ts'
import { createPlace } from './place.ts'

const MEMORIES = 60
const ENTRIES = 1500
const SECRET = 'quizzaciously'
const random = randomSource(113)

/** A word of its own for each place that a value may lie in. */
const secretWord = (place: string, number: number): string => `${SECRET}${place}${number}x`

/** What is written about one Memory: with secrets in every field when `isSecret`. */
function about(number: number, isSecret: boolean) {
  const word = (place: string): string => (isSecret ? secretWord(place, number) : `plain${place}${number}x`)
  const filler = 'rye bread '.repeat(Math.floor(random() ** 4 * 800))
  return {
    isSecret,
    headers: { 'User-Agent': word('agent') },
    content: (version: number) => `${word('text')} ${filler} ${word(`version${version}y`)}`,
    // Random values, so that they stand among those of others in every index.
    tags: Object.fromEntries(['a', 'b', 'c'].map((key) => [`${key}${word('key')}`, `${random()}${word('value')}`])),
    tag: (n: number) => `/tags/${word(`key${n}z`)}`,
  }
}

async function writeAll(server: RunningServer, workspace: string): Promise<string[]> {
  const memories = Array.from({ length: MEMORIES }, (_, i) => about(i, i % 2 === 0))
  const path = `/workspaces/${workspace}/memories`
  const ids: string[] = []
  for (const { content, tags, headers } of memories) {
    ids.push((await call(server, 'POST', path, { content: content(0), tags }, headers)).body.memory_id)
  }
  for (let version = 1; version <= 3; version++) {
    for (const [i, { content, headers, tag }] of memories.entries()) {
      await call(server, 'POST', `${path}/${ids[i]}:append`, { content: content(version) }, headers)
      await call(
        server,
        'PUT',
        `${path}/${ids[i]}${tag(version)}`,
        { value: `${random()}${content(version)}`.slice(0, 4000) },
        headers,
      )
    }
  }
  // The first one gets many entries, each among one of another Memory.
  for (let n = 0; n < ENTRIES; n += 2) {
    const entries = [0, 0, 1 + (n % (MEMORIES - 1))].map(async (i, k) => {
      const { tag, headers } = memories[i] ?? about(i, false)
      const key = tag(k === 0 ? n : n + 1)
      await call(server, 'PUT', `${path}/${ids[i]}${key}`, { value: key.slice(0, 30) }, headers)
      return call(server, 'DELETE', `${path}/${ids[i]}${key}`, undefined, headers)
    })
    await Promise.all(entries)
  }
  return ids.filter((_, i) => memories[i]?.isSecret)
}

/** Where the secret still lies, with what stands around it. */
function findSecrets(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .flatMap((entry) => {
      const bytes = readFileSync(join(entry.parentPath, entry.name))
      const found: string[] = []
      for (let at = bytes.indexOf(SECRET); at >= 0; at = bytes.indexOf(SECRET, at + 1)) {
        found.push(
          `${entry.name} ${at >> 12}.${at & 4095}: ${JSON.stringify(bytes.subarray(at - 60, at + 60).toString('latin1'))}`,
        )
      }
      return found
    })
}

it('memory#113 forgetting with redaction leaves no value in the files, whether the server runs or has ended', async () => {
  const place = await createPlace('sqlite')
  const server = await place.start()
  const workspace = await createWorkspace(server)
  await call(server, 'POST', `/workspaces/${workspace}/memories`, { content: 'registers the agent' })
  const secrets = await writeAll(server, workspace)
  expect(findSecrets(place.directory)).not.toEqual([])

  for (const id of secrets.sort(() => random() - 0.5)) {
    const path = `/workspaces/${workspace}/memories/${id}?redact_audit=true`
    const { status, body } = await call(server, 'DELETE', path, undefined, { 'User-Agent': secretWord('agent', 0) })
    expect(status).toBe(200)
    expect(body.redacted_entries).toBeGreaterThan(4)
  }
  await expect.poll(() => findSecrets(place.directory), { interval: 1000, timeout: 60_000 }).toEqual([])
  expect(await server.stop()).toBe(0)
  expect(findSecrets(place.directory)).toEqual([])

  const stores = await place.open()
  const head = await findChain(stores, workspace)
  expect(await verifyChain(stores, workspace, async () => head)).toMatchObject({
    ok: true,
    entries: head?.seq,
  })
  await stores.close()
  await place.remove()
})
