import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach } from 'vitest'
import { runCli, type CliResult } from '../cli/run-cli.ts'

export const HELLO = `workflow "hello" {
  input "who" {
    type    = string
    default = "world"
  }
  input "times" {
    type    = number
    default = 1
  }
  node manual start {}
  node set greet {
    name  = "greeting"
    value = "Hello \${input.who}"
  }
  node transform twice { template = { text = var.greeting, n = 2 * input.times } }
  edge start greet {}
  edge greet twice {}
}
`

let directory: string

/** A directory for each test of a file. */
export function useDirectory(): void {
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'mem-runbook-'))
    write('hello.hcl', HELLO)
  })
  afterEach(() => rmSync(directory, { recursive: true }))
}

export const at = (name: string): string => join(directory, name)
export function write(name: string, text: string): string {
  writeFileSync(at(name), text)
  return at(name)
}
export const read = (name: string): string => readFileSync(at(name), 'utf8')

type Surroundings = Parameters<typeof runCli>[1]
export const mem = (args: string[], { env = {}, ...more }: Surroundings = {}): Promise<CliResult> =>
  runCli(args, { env: { HOME: directory, ...env }, ...more })

interface Shown {
  status: string
  run: { id: string; attempt: number }
  nodes: { id: string; status: string; output?: unknown; reused?: boolean; config?: unknown }[]
}

export async function report(args: string[], more: Surroundings = {}): Promise<Shown> {
  const { stdout } = await mem(['run', ...args, '--output', 'json'], more)
  const shown: Shown = JSON.parse(stdout)
  return shown
}

export const outputs = ({ nodes }: Shown): Record<string, unknown> =>
  Object.fromEntries(nodes.map(({ id, output }) => [id, output]))
export const statuses = ({ nodes }: Shown): Record<string, string> =>
  Object.fromEntries(nodes.map(({ id, status }) => [id, status]))
