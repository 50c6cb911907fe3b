import { expect, test } from 'vitest'
import { openServer } from '../support/http-server.ts'
import { runCli } from './run-cli.ts'

const READERS = [
  'whoami',
  'health',
  'ready',
  'workspaces list',
  'list -w ws_1',
  'ledger list -w ws_1',
  'platform users list',
  'platform flags list',
  'gateway credentials list',
  'gateway credentials test main',
  'gateway keys list',
  'gateway keys add --name ci',
  'gateway settings',
  'gateway metrics-token',
  'gateway metrics-token create',
  'gateway usage',
  'gateway cost',
  'gateway audit --verify',
  'gateway models',
  'gateway models --explain fast',
  'gateway chat hi --model fast',
  'gateway chat hi --model fast --no-stream',
  'logout',
]

test.each(['{"hello": "world"}', '[1]', 'null', '"hello"', '<html>'])(
  'a server that is none of ours answers %s',
  async (answer) => {
    const endpoint = await openServer((_, response) => void response.end(answer))
    const env = { MEM_ENDPOINT: endpoint, MEM_SESSION_TOKEN: 'mst_x', HOME: '/nonexistent' }
    for (const line of READERS) {
      const { code, stdout, stderr } = await runCli(line.split(' '), { env })
      expect({ line, code, stdout, stderr: stderr.split('\n')[0]?.replace(/server does:.*/, 'server does') }).toEqual({
        line,
        code: 4,
        stdout: '',
        stderr: `error: ${endpoint} answers, but not as a mem server does`,
      })
    }
  },
)

test('an address that cannot be called is a mistake of the command line, and its password is not told', async () => {
  const whoami = (endpoint: string) => runCli(['whoami'], { env: { MEM_ENDPOINT: endpoint, HOME: '/nonexistent' } })
  expect(await whoami('127.0.0.1:7777')).toMatchObject({ code: 1, stderr: expect.stringContaining('must be a URL') })
  expect(await whoami('http://me:secret@127.0.0.1:7777')).toMatchObject({
    code: 1,
    stderr: expect.not.stringContaining('secret'),
  })
})
