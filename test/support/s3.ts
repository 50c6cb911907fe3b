import { spawn } from 'node:child_process'
import { createHash, createHmac } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { packageRoot } from '../../src/base/package-root.ts'
import { freePort } from './ports.ts'

export interface S3Server {
  /** For the environment of a program: where it is and who may write. */
  env: Record<string, string>
  dsn: string
  /** Where it keeps the objects of its bucket. */
  directory: string
  /** Takes no connections until `resume`. */
  pause(): Promise<void>
  resume(): Promise<void>
  stop(): Promise<void>
}

/** The one account of the server, and its secret. */
const ACCOUNT = 'S3RVER'

/** Starts an S3 server with an empty bucket, behind a door that checks signatures: s3rver does not check those of version 4. */
export async function startS3(): Promise<S3Server> {
  const directory = mkdtempSync(join(tmpdir(), 'mem-test-s3-'))
  mkdirSync(join(directory, 'bodies'))
  const [port, innerPort] = [await freePort(), await freePort()]
  // It pages with a cipher that OpenSSL 3 has only in its legacy provider.
  const child = spawn(process.execPath, [
    '--openssl-legacy-provider',
    join(packageRoot, 'node_modules/s3rver/bin/s3rver.js'),
    '--directory',
    directory,
    '--port',
    String(innerPort),
    '--configure-bucket',
    'bodies',
    '--silent',
  ])
  while (!(await answers(innerPort))) await new Promise((next) => setTimeout(next, 20))
  const door = createServer((asked, answer) => void pass(asked, answer, innerPort))
  const open = async (): Promise<void> => void (await once(door.listen(port, '127.0.0.1'), 'listening'))
  const pause = async (): Promise<void> => {
    if (!door.listening) return
    const closed = once(door, 'close')
    door.close()
    door.closeAllConnections()
    await closed
  }
  await open()
  return {
    env: {
      AWS_ENDPOINT_URL: `http://127.0.0.1:${port}`,
      AWS_REGION: 'us-east-1',
      AWS_ACCESS_KEY_ID: ACCOUNT,
      AWS_SECRET_ACCESS_KEY: ACCOUNT,
    },
    dsn: 's3://bodies/mem/test',
    directory: join(directory, 'bodies'),
    pause,
    resume: open,
    stop: async () => {
      await pause()
      const ended = once(child, 'close')
      child.kill('SIGKILL')
      await ended
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

const answers = (port: number): Promise<boolean> =>
  fetch(`http://127.0.0.1:${port}`).then(
    async (answer) => (await answer.arrayBuffer()).byteLength >= 0,
    () => false,
  )

async function pass(asked: IncomingMessage, answer: ServerResponse, port: number): Promise<void> {
  const body = await buffer(asked)
  if (!isSigned(asked, body)) {
    answer.writeHead(403).end('<Error><Code>SignatureDoesNotMatch</Code></Error>')
    return
  }
  const { method, url, headers } = asked
  const inner = request({ host: '127.0.0.1', port, method, path: url, headers }, (found) => {
    answer.writeHead(found.statusCode ?? 500, found.headers)
    found.pipe(answer)
  })
  inner.end(body)
}

const sha256 = (data: string | Buffer): string => createHash('sha256').update(data).digest('hex')
const hmac = (key: string | Buffer, data: string): Buffer => createHmac('sha256', key).update(data).digest()

/** AWS Signature Version 4, as its documentation has it: "Create a signed AWS API request". */
function isSigned({ method = '', url = '', headers }: IncomingMessage, body: Buffer): boolean {
  const sent = /^AWS4-HMAC-SHA256 Credential=([^,]+), ?SignedHeaders=([^,]+), ?Signature=(\w+)$/.exec(
    headers.authorization ?? '',
  )
  const [, credential = '', signedHeaders = '', signature] = sent ?? []
  const [account, date = '', region = '', service = ''] = credential.split('/')
  const hash = String(headers['x-amz-content-sha256'])
  if (account !== ACCOUNT || service !== 's3' || hash !== sha256(body)) return false
  const [path = '', query = ''] = url.split('?')
  const canonical = [
    method,
    path,
    query.split('&').sort().join('&'),
    ...signedHeaders.split(';').map((name) => `${name}:${String(headers[name]).trim()}`),
    '',
    signedHeaders,
    hash,
  ].join('\n')
  const scope = `${date}/${region}/s3/aws4_request`
  const text = ['AWS4-HMAC-SHA256', headers['x-amz-date'], scope, sha256(canonical)].join('\n')
  const key = [date, region, 's3', 'aws4_request'].reduce<string | Buffer>(hmac, `AWS4${ACCOUNT}`)
  return hmac(key, text).toString('hex') === signature
}
