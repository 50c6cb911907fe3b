import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageRoot } from '../../base/package-root.ts'
import { canAsk, input as askText, select } from '../ask.ts'
import { defineCommand } from '../command.ts'
import { usageError } from '../exit.ts'

const TEMPLATES = ['hello', 'branch', 'loop', 'http'] as const

export const create = defineCommand({
  args: { name: { help: 'Name of the workflow', optional: true } },
  flags: {
    template: { value: 'template', choices: TEMPLATES, help: 'What to begin with (hello)' },
    out: { value: 'file', help: 'Where to write it (NAME.hcl)' },
  },
  notes: 'Never writes over a file. What is not said is asked for, on a terminal.',
  examples: ['workflow new', 'workflow new deploy --template http', 'workflow new nightly --out runbooks/nightly.hcl'],
  async run({ io, output }, input) {
    const asked = input.name === undefined && canAsk(io)
    const name = input.name ?? (await askText(io, 'Name of the workflow', 'hello'))
    if (!/^[\p{L}\p{N}_-]{1,128}$/u.test(name)) {
      throw usageError(`'${name}' is no name for a workflow`, 'Letters, digits, - and _ make one.')
    }
    const template = input.template ?? (asked ? await select(io, 'Begin with', TEMPLATES) : 'hello')
    const file = input.out ?? `${name}.hcl`
    const text = readFileSync(join(packageRoot, 'templates/workflows', `${template}.hcl`), 'utf8')
    write(file, text.replace('FILE', file).replace('"NAME"', `"${name}"`))
    await output.answer({ file, name, template }, () => [[file, 'written']])
    output.note(`next: mem validate ${file}, then mem run ${file}`)
  },
})

function write(file: string, text: string): void {
  try {
    writeFileSync(file, text, { flag: 'wx' })
  } catch (error) {
    const exists = error instanceof Error && 'code' in error && error.code === 'EEXIST'
    if (exists) throw usageError(`${file} exists`, 'Give another name, or --out.')
    throw usageError(`cannot write ${file}`, error instanceof Error ? error.message : undefined)
  }
}
