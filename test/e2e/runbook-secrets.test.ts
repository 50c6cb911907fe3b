import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { runProgram } from '../support/program.ts'

const SECRET = 's3cr3t/valüe+"x" \\ %'
const FORMS = [
  SECRET,
  JSON.stringify(SECRET).slice(1, -1),
  encodeURIComponent(SECRET),
  Buffer.from(SECRET).toString('base64').replace(/=+$/, '').slice(0, -1),
  Buffer.from(`user:${SECRET}`).toString('base64').slice(8, -4),
  Buffer.from(SECRET).toString('base64url').slice(0, -1),
]
const PASSWORD = 'database-pass-word'
const HOOK = 'T000/B000/hook-token-9876'

/** Sends back all that it is sent, as the worst of servers does. */
const server = createServer((request, response) => {
  response.statusCode = request.url?.startsWith('/fail') ? 500 : 200
  response.setHeader('X-Echo', encodeURIComponent(String(request.headers.authorization)))
  response.end(JSON.stringify({ url: request.url, headers: request.headers }))
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const { port } = server.address() as AddressInfo
const directory = mkdtempSync(join(tmpdir(), 'mem-secrets-'))
afterAll(() => {
  server.close()
  rmSync(directory, { recursive: true, force: true })
})

writeFileSync(
  join(directory, 'w.hcl'),
  `workflow "w" {
  description = "uses its secrets everywhere"
  input "pin" {
    type      = string
    sensitive = true
  }
  locals { derived = sensitive("prefix-\${secret.key}") }

  node transform shapes {
    template = {
      plain   = secret.key
      inside  = "a \${secret.key} b"
      json    = jsonencode({ k = secret.key })
      url     = urlencode(secret.key)
      base64  = base64encode("user:\${secret.key}")
      derived = local.derived
      braces  = "{{secret.key}} {{input.pin}}"
    }
  }
  node http echo {
    url     = "http://127.0.0.1:${port}/?key=\${urlencode(secret.key)}"
    auth    = { username = "user", password = secret.key }
    headers = { X-Key = base64encode(secret.key), X-Pin = input.pin }
  }
  node http failing {
    url      = "http://127.0.0.1:${port}/fail/\${urlencode(secret.key)}"
    auth     = { bearer = base64encode(secret.key) }
    on_error = "continue"
    retry {
      attempts = 2
      backoff  = "1ms"
    }
  }
  node slack chat {
    webhookUrl = "http://127.0.0.1:${port}/fail/\${secret.hook}"
    text       = "\${secret.key} \${secret.hook}"
    on_error   = "continue"
  }
  node vectordb database {
    connectionString = "postgres://someone:\${secret.password}@127.0.0.1:1/db"
    table            = "t"
    vector           = [1]
    on_error         = "continue"
  }
  node transform wrong {
    template = { n = tonumber(secret.key) }
    on_error = "continue"
  }
  node transform last { template = { n = tonumber("x \${secret.key}") } }

  edge shapes echo {}
  edge echo failing {}
  edge failing chat {}
  edge chat database {}
  edge database wrong {}
  edge wrong last {}
}
`,
)

const GIVEN = ['w.hcl', '--secret', 'key=env:KEY', '--secret', 'hook=env:HOOK', '--secret', 'password=env:PASSWORD']
const mem = (args: string[]) =>
  runProgram([...args, '--input', 'pin=pin-4711-0815'], { directory, env: { KEY: SECRET, HOOK, PASSWORD } })

/** The forms of secrets that a text holds. */
function leaks(text: string): string[] {
  const plain = [...FORMS, PASSWORD, HOOK, encodeURIComponent(HOOK), 'pin-4711-0815']
  return plain.filter((form) => text.includes(form))
}

test.each(['text', 'json', 'jsonl', 'yaml'])('runbook#108 no secret in the streams of %s', async (format) => {
  const { code, stdout, stderr } = await mem(['run', ...GIVEN, '--output', format])
  expect(code).toBe(4)
  expect({ stdout: leaks(stdout), stderr: leaks(stderr) }).toEqual({ stdout: [], stderr: [] })
  expect(stdout + stderr).toContain('***')
})

test('runbook#108 no secret in a report, a journal, a plan, a dry run, a resume', async () => {
  const run = ['run', ...GIVEN, '--run-dir', 'run', '--report', 'report.json']
  await mem(run)
  await mem([...run, '--resume', 'run'])
  const shown = [
    await mem(['plan', ...GIVEN]),
    await mem(['plan', ...GIVEN, '--output', 'json']),
    await mem(['run', ...GIVEN, '--dry-run', '--output', 'json']),
    await mem(['validate', ...GIVEN]),
    await mem(['validate', ...GIVEN, '--json']),
    await runProgram(['graph', 'w.hcl', '--report', 'report.json', '--format', 'svg'], { directory }),
  ]
  for (const { stdout, stderr } of shown)
    expect([stdout === '' ? stderr : '', leaks(stdout + stderr)]).toEqual(['', []])
  const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  expect(files.map(({ name }) => name).toSorted()).toEqual(expect.arrayContaining(['journal.jsonl', 'report.json']))
  for (const { parentPath, name } of files)
    expect([name, leaks(readFileSync(join(parentPath, name), 'utf8'))]).toEqual([name, []])
})

test('runbook#109 URLs of databases and webhooks are masked in errors', async () => {
  const { stdout } = await mem(['run', ...GIVEN, '--output', 'json'])
  const { nodes }: { nodes: { id: string; error?: { code: string; message: string } }[] } = JSON.parse(stdout)
  const error = (id: string) => nodes.find((node) => node.id === id)?.error
  expect(error('chat')).toMatchObject({ code: 'http_status' })
  expect(error('database')).toMatchObject({ code: 'network_error' })
  for (const id of ['chat', 'database']) expect(leaks(JSON.stringify(error(id)))).toEqual([])
  expect(stdout).not.toContain('someone')
})

test('runbook#108 a secret of fewer than four characters is masked as a whole text, with a warning', async () => {
  writeFileSync(
    join(directory, 'short.hcl'),
    'workflow "w" {\n  node transform a { template = { whole = secret.k, inside = "1 ${secret.k} 2" } }\n}\n',
  )
  const { stdout, stderr } = await runProgram(['run', 'short.hcl', '--secret', 'k=env:K'], {
    directory,
    env: { K: 'abc' },
  })
  expect(stdout).toContain('"whole": "***"')
  expect(stdout).toContain('"inside": "1 abc 2"')
  expect(stderr).toContain('secret.k has fewer than 4 characters')
})
