import { readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { openDatabase } from '../../src/database/open.ts'
import { runCli } from '../cli/run-cli.ts'
import { startMemoryApi, type MemoryApi } from '../support/memory-api.ts'
import { startS3, type S3Server } from '../support/s3.ts'
import { expectError, expectOk } from '../support/expectations.ts'
import { CONTENT_DRIVERS, createContentPlace, type ContentPlace } from '../support/contents.ts'

const LONG = Array.from({ length: 60 }, (_, i) => `Paragraph ${i}: the keeper wrote of wind ${i} and tide.`).join(
  '\n\n',
)

/** Every text that the metadata database holds of a Memory. */
async function textsInRows(api: MemoryApi, memoryId: string): Promise<(string | null)[]> {
  const db = openDatabase({ ...api.address, readonly: true })
  const versions = await db.all<{ content: string | null }>('SELECT content FROM memory_version WHERE memory_id = $1', [
    memoryId,
  ])
  const cells = await db.all<{ text: string | null }>('SELECT text FROM cell WHERE memory_id = $1', [memoryId])
  await db.close()
  return [...versions.map(({ content }) => content), ...cells.map(({ text }) => text)].filter((text) => text !== null)
}

async function keysOf(place: ContentPlace, ws: string): Promise<string[]> {
  const keys: string[] = []
  for await (const page of place.store.list(`${ws}/`)) keys.push(...page.map(({ key }) => key))
  return keys
}

describe.each(CONTENT_DRIVERS)('content in %s', (driver) => {
  let place: ContentPlace
  let api: MemoryApi
  beforeAll(async () => {
    place = await createContentPlace(driver)
    api = await startMemoryApi({ dialect: 'sqlite', env: place.env })
  })
  afterAll(async () => {
    await api.stop()
    await place.remove()
  })

  test('memory#136 memory#138 every reader of bodies reads them from the content store', async () => {
    const ws = await api.workspace({ auto_link_enabled: true })
    const M = `/workspaces/${ws}/memories`
    const first = await api.imprint(ws, LONG)
    const second = await api.imprint(ws, 'The lamp of the keeper is lit at dusk. 🕯️', { chunker_id: 'no-chunk' })
    await api.imprint(ws, '   ')
    const head = expectOk(await api.call('GET', `${M}/${first}`))
    expect(head.content).toBe(LONG)
    const letters = (texts: string[]): string => texts.join('').replace(/\s/g, '')
    expect(letters(head.cells.map((cell: { text: string }) => cell.text))).toBe(letters([LONG]))
    const patched = expectOk(
      await api.call('PATCH', `${M}/${first}`, {
        patch: [{ old_string: 'wind 30', new_string: 'a storm' }],
        expected_watermark: head.head_watermark,
      }),
    )
    expect(patched.cells_skipped).toBeGreaterThan(0)
    expectOk(await api.call('POST', `${M}/${first}:append`, { content: '\n\nThe last word is anchor.' }))
    const now = `${LONG.replace('wind 30', 'a storm')}\n\nThe last word is anchor.`
    expect(expectOk(await api.call('GET', `${M}/${first}`)).content).toBe(now)
    expect(expectOk(await api.call('GET', `${M}/${first}@${head.head_watermark}`)).content).toBe(LONG)
    const listed = expectOk(await api.call('GET', M)).memories
    expect(listed.map((memory: { content: string }) => memory.content)).toEqual(['   ', expect.any(String), now])

    for (const mode of ['keyword', 'vector', 'hybrid']) {
      const request = { query: 'anchor storm', mode, k: 2, include_cells: true }
      const { results } = expectOk(await api.call('POST', `/workspaces/${ws}/recall`, request))
      expect(results[0].memory_id).toBe(first)
      expect(now).toContain(results[0].text)
      for (const cell of results[0].cells) expect(now).toContain(cell.text)
    }
    const lookup = { query: '', mode: 'lookup', memory_ids: [second, first] }
    const { results } = expectOk(await api.call('POST', `/workspaces/${ws}/recall`, lookup))
    expect(results.map((hit: { text: string }) => hit.text)).toEqual([expect.stringContaining('🕯️'), now])
    const dump = await fetch(`${api.url}/ui/api/bulk/dump?ws=${ws}`).then((answer) => answer.text())
    expect(dump).toContain('anchor')
    expect(await (await fetch(`${api.url}/ui/workspaces/${ws}/memories`)).text()).toContain('The lamp of the keeper')

    expect(await textsInRows(api, first)).toEqual([])
    expect(await keysOf(place, ws)).toHaveLength(5)
    expectOk(await api.call('DELETE', `${M}/${first}`))
    const keys = () => keysOf(place, ws)
    await expect.poll(keys).toHaveLength(2)
    expectError(await api.call('GET', `${M}/${first}`), 404, 'not_found')
  })

  test('memory#138 a lost or damaged object falls back to the metadata row, or is a 500 that says so', async () => {
    const ws = await api.workspace()
    const id = await api.imprint(ws, 'a note on ropes and knots')
    const other = await api.imprint(ws, 'another note')
    const M = `/workspaces/${ws}/memories/${id}`
    const [key = ''] = (await keysOf(place, ws)).filter((each) => each.includes(id))
    const whole = (await place.store.get([key])).get(key) ?? Buffer.alloc(0)
    for (const damaged of [Buffer.from(whole).toString().replace('ropes', 'soaps'), 'no object of ours', '']) {
      await place.store.put(key, Buffer.from(damaged))
      expectError(await api.call('GET', M), 500, 'internal_error', { reason: 'content_damaged' })
    }
    await place.store.delete([key])
    expectError(await api.call('GET', M), 500, 'internal_error', { reason: 'content_lost' })
    expectError(await api.call('POST', `${M}:append`, { content: '!' }), 500, 'internal_error', {
      reason: 'content_lost',
    })
    const lookup = await api.call('POST', `/workspaces/${ws}/recall`, { query: 'another note', mode: 'keyword' })
    expect(expectOk(lookup).results.map((hit: { memory_id: string }) => hit.memory_id)).toEqual([other])

    const db = openDatabase(api.address)
    await db.run('UPDATE memory_version SET content = $2 WHERE memory_id = $1', [id, 'a note on ropes and knots'])
    await db.run('UPDATE cell SET text = $2 WHERE memory_id = $1', [id, 'a note on ropes and knots'])
    await db.close()
    expect(expectOk(await api.call('GET', M)).content).toBe('a note on ropes and knots')
    expectOk(await api.call('DELETE', M))
    expect(expectOk(await api.call('GET', `/workspaces/${ws}/memories/${other}`)).content).toBe('another note')
  })

  test('memory#134 what a refused write stored is taken back', async () => {
    const ws = await api.workspace()
    const id = await api.imprint(ws, 'one')
    const M = `/workspaces/${ws}/memories/${id}`
    const { head_watermark: mark } = expectOk(await api.call('GET', M))
    const puts = await Promise.all(
      Array.from({ length: 8 }, (_, i) => api.call('PUT', M, { content: `two ${i}`, expected_watermark: mark })),
    )
    expect(puts.map(({ status }) => status).sort((a, b) => a - b)).toEqual([200, ...Array<number>(7).fill(412)])
    expect(await keysOf(place, ws)).toHaveLength(2)
  })
})

describe('content in s3', () => {
  async function start(env: Record<string, string> = {}): Promise<{ api: MemoryApi; s3: S3Server; ws: string }> {
    const s3 = await startS3()
    const content = { MEM_CONTENT_DRIVER: 's3', MEM_CONTENT_DSN: s3.dsn, ...s3.env, ...env }
    const api = await startMemoryApi({ dialect: 'sqlite', env: content })
    onTestFinished(async () => {
      await api.stop()
      await s3.stop()
    })
    return { api, s3, ws: await api.workspace() }
  }

  test('with a wrong secret a write fails and leaves nothing; reads of records go on', async () => {
    const { api, ws } = await start({ AWS_SECRET_ACCESS_KEY: 'wrong' })
    const refused = await api.call('POST', `/workspaces/${ws}/memories`, { content: 'a note' })
    expectError(refused, 500, 'internal_error', { reason: 'content_unavailable' })
    expect(refused.body.message).toContain('content store')
    expect(JSON.stringify(refused.body)).not.toContain('wrong')
    expect(expectOk(await api.call('GET', `/workspaces/${ws}/memories`)).memories).toEqual([])
    const { entries } = expectOk(await api.call('GET', `/workspaces/${ws}/ledger?op=imprint`))
    expect(entries).toEqual([])
    expectOk(await api.call('GET', '//readyz'))
  })

  test('a server that is away fails writes and reads of bodies, and nothing once it is back', async () => {
    const { api, s3, ws } = await start()
    const id = await api.imprint(ws, 'a note')
    const M = `/workspaces/${ws}/memories/${id}`
    await s3.pause()
    for (const reply of [
      await api.call('GET', M),
      await api.call('POST', `/workspaces/${ws}/memories`, { content: 'another' }),
    ]) {
      expectError(reply, 500, 'internal_error', { reason: 'content_unavailable' })
    }
    expectOk(await api.call('GET', `/workspaces/${ws}/memories?include_content=false`))
    expect(expectOk(await api.call('DELETE', M)).memory_id).toBe(id)
    await s3.resume()
    const other = await api.imprint(ws, 'another')
    expect(expectOk(await api.call('GET', `/workspaces/${ws}/memories/${other}`)).content).toBe('another')
    const left = () => readdirSync(s3.directory, { recursive: true }).filter((name) => String(name).includes(id))
    await expect.poll(left).toEqual([])
  })

  test('doctor tells what is wrong with it, print-config shows no secret', async () => {
    const s3 = await startS3()
    onTestFinished(() => s3.stop())
    const content = {
      MEM_CONTENT_DRIVER: 's3',
      MEM_CONTENT_DSN: s3.dsn,
      MEM_DATA_DIR: tmpdir(),
      HOME: tmpdir(),
      ...s3.env,
    }
    const doctor = async (env: Record<string, string>) =>
      (await runCli(['doctor', '-o', 'json'], { env: { ...content, ...env } })).stdout
    expect(await doctor({})).toContain(`s3 ${s3.dsn} answers at ${s3.env['AWS_ENDPOINT_URL']}`)
    expect(await doctor({ AWS_SECRET_ACCESS_KEY: 'wrong' })).toContain('403: check AWS_ACCESS_KEY_ID')
    expect(await doctor({ MEM_CONTENT_DSN: 's3://no-bucket' })).toContain('there is no such bucket')
    const printed = await runCli(['print-config'], { env: { ...content, AWS_SECRET_ACCESS_KEY: 'hidden-one' } })
    expect(printed.stdout).toContain('secret_access_key')
    expect(printed.stdout).not.toContain('hidden-one')
    expect(await runCli(['check-config'], { env: { ...content, AWS_SECRET_ACCESS_KEY: '' } })).toMatchObject({
      code: 78,
      stderr: expect.stringContaining('AWS_SECRET_ACCESS_KEY'),
    })
  })
})
