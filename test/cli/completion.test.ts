import { execFileSync } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import { SECTIONS } from '../../src/cli/table.ts'
import { runCli } from './run-cli.ts'

const COMMANDS = Object.values(SECTIONS).flatMap(Object.keys)
const script = async (shell: string): Promise<string> => (await runCli(['completion', shell])).stdout

/** What bash would offer for the last of these words. */
async function offered(...words: string[]): Promise<string[]> {
  const probe = `${await script('bash')}
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _mem; printf '%s\\n' "\${COMPREPLY[@]}"`
  const lines = execFileSync('bash', ['-c', probe, 'bash', 'mem', ...words], { encoding: 'utf8' })
  return lines.split('\n').filter((line) => line !== '')
}

describe('completion bash', () => {
  test.each([
    ['nouns and verbs', ['impr'], ['imprint']],
    ['verbs of a noun', ['workspaces', ''], expect.arrayContaining(['list', 'create', 'update'])],
    ['flags of a verb', ['recall', '--nei'], ['--neighbor-depth']],
    ['global flags everywhere', ['tags', 'set', '--ver'], ['--verbose']],
    ['the other half of a switch', ['imprint', '--no-a'], ['--no-auto-link']],
    ['values of a flag', ['recall', 'q', '--mode', 'k'], ['keyword']],
    ['values of a short global flag', ['list', '-o', 'j'], ['json', 'jsonl']],
    ['behind a global flag before the verb', ['-o', 'json', 'pin', 'cr'], ['create']],
    ['nothing that is not there, so that files are offered', ['link-batch', 'edg'], []],
  ])('offers %s', async (_, words, expected) => {
    expect(await offered(...words)).toEqual(expected)
  })
})

test.each(['bash', 'zsh', 'fish'])('the script for %s knows every command', async (shell) => {
  const text = await script(shell)
  for (const word of new Set(COMMANDS.flatMap((command) => command.split(' ')))) expect(text).toContain(word)
  for (const program of ['mem', 'mem-cli', 'mem-core', 'openseal']) expect(text).toMatch(new RegExp(`\\b${program}\\b`))
})

test('another shell is refused', async () => {
  expect(await runCli(['completion', 'tcsh'])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('bash, zsh, fish'),
  })
})
