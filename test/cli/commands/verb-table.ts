import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { startRecordingServer, type RecordingServer, type Reply } from '../../client/recording-server.ts'
import { runCli, type CliResult } from '../run-cli.ts'

export interface Verb {
  argv: string[]
  replies: Reply[]
  sent: { line: string; body?: unknown; headers?: Record<string, string> }[]
  /** Text on stdout. */
  shows: string
}

export interface Bench {
  server: RecordingServer
  /** Runs a command line against the server, in workspace `ws_1`. */
  run(argv: string[], stdin?: string): Promise<CliResult>
}

/** A recording server for the tests of one file. */
export function useServer(): Bench {
  let server: RecordingServer
  beforeAll(async () => {
    server = await startRecordingServer()
  })
  afterAll(() => server.close())
  beforeEach(() => {
    server.requests.length = 0
    server.replies.length = 0
  })
  return {
    get server() {
      return server
    },
    run: (argv, stdin = '') => runCli(argv, { env: { MEM_ENDPOINT: server.endpoint, MEM_WORKSPACE: 'ws_1' }, stdin }),
  }
}

/** Each verb sends these requests, in this order, and prints these lines. */
export function testVerbs(bench: Bench, verbs: Record<string, Verb>): void {
  test.each(Object.entries(verbs))('%s', async (_, { argv, replies, sent, shows }) => {
    bench.server.replies.push(...replies)
    expect(await bench.run(argv)).toMatchObject({ code: 0, stdout: shows })
    const { requests } = bench.server
    expect(requests.map(({ method, url }) => `${method} ${url}`)).toEqual(sent.map(({ line }) => line))
    for (const [i, { body, headers = {} }] of sent.entries()) {
      expect(requests[i]?.body).toEqual(body)
      expect(requests[i]?.headers).toMatchObject(headers)
    }
  })
}
