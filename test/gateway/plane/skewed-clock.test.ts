import { expect, test } from 'vitest'
import { classes } from './pair.ts'
import { CHAT, credentialAt, startRig, startUpstream, type Script } from './support.ts'

const AHEAD_MS = 3_600_000
const ANSWERS = {
  invoke: { embedding: [1, 2], inputTextTokenCount: 1 },
  converse: { output: { message: { content: [{ text: 'Hello' }] } }, stopReason: 'end_turn' },
}

/** Bedrock an hour ahead of us: it answers `together` calls at once when the last of them is there. */
async function rig(together: number) {
  const waiting: (() => void)[] = []
  const script: Script = async (response, { headers, url }) => {
    if (upstream.seen.length <= together) {
      await new Promise<void>((resolve) => {
        waiting.push(resolve)
        if (waiting.length === together) for (const answer of waiting) answer()
      })
    }
    const signedAt = String(headers['x-amz-date']).replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)/, '$1-$2-$3T$4:$5:')
    const isLate = Date.parse(signedAt) < theirs - 300_000
    response.writeHead(isLate ? 403 : 200, {
      'content-type': 'application/json',
      date: new Date(theirs).toUTCString(),
      ...(isLate && { 'x-amzn-errortype': 'InvalidSignatureException' }),
    })
    const answer = url.endsWith('/invoke') ? ANSWERS.invoke : ANSWERS.converse
    response.end(JSON.stringify(isLate ? { message: 'Signature expired' } : answer))
  }
  const upstream = await startUpstream(script)
  const credential = credentialAt(1, upstream, {
    kind: 'bedrock',
    baseUrl: `http://127.0.0.1:${upstream.port}`,
    config: { region: 'us-east-1', access_key_id: 'A' },
    secrets: { secret_access_key: 's'.repeat(40) },
  })
  const started = await startRig({ credentials: [credential] })
  const theirs = started.now() + AHEAD_MS
  return { upstream, ...started }
}

test('gateway#70 calls that were signed together, before the time was learnt, each go out once more', async () => {
  const { call, record, upstream } = await rig(3)
  const answers = await Promise.all([1, 2, 3].map(() => call('chat/completions', CHAT)))
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
  expect(classes(await record())).toEqual(['ok'])
  expect(upstream.seen).toHaveLength(6)
})

test('gateway#70 so do the calls that answer one request together', async () => {
  const { call, upstream } = await rig(4)
  const answer = await call('embeddings', { model: 'amazon.titan-embed', input: ['a', 'b', 'c', 'd', 'e'] })
  expect(answer).toMatchObject({ status: 200, headers: { 'x-mem-attempts': '1' } })
  expect(answer.body.data).toHaveLength(5)
  expect(upstream.seen).toHaveLength(9)
})
