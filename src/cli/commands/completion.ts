import { defineCommand, type Flags } from '../command.ts'
import { bashScript, fishScript, zshScript, type Place } from '../completion-scripts.ts'
import { GLOBAL_FLAGS } from '../settings.ts'
import { NOUNS, SECTIONS, type Entry } from '../table.ts'

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript }

export const completion = defineCommand({
  args: { shell: { choices: ['bash', 'zsh', 'fish'], help: 'Which shell the script is for' } },
  examples: [
    'completion bash >> ~/.bashrc',
    'completion zsh >> ~/.zshrc',
    'completion fish > ~/.config/fish/completions/mem.fish',
  ],
  async run(context, { shell }) {
    context.io.stdout.write(SCRIPTS[shell](await places()))
  },
})

/** The root, every noun and every verb of the command table. */
async function places(): Promise<Place[]> {
  const found = new Map<string, Place>()
  const place = (words: string): Place => {
    const known = found.get(words)
    if (known) return known
    const made: Place = { words, verbs: [], flags: describe(GLOBAL_FLAGS) }
    found.set(words, made)
    return made
  }
  place('').verbs.push({ name: 'help', help: 'Tell about a command' })
  for (const [words, { summary, load }] of Object.values(SECTIONS).flatMap(Object.entries<Entry>)) {
    const path = words.split(' ')
    for (const [i, name] of path.entries()) {
      const [before, here] = [path.slice(0, i).join(' '), path.slice(0, i + 1).join(' ')]
      if (!found.has(here)) place(before).verbs.push({ name, help: NOUNS[here] ?? summary })
      place(here)
    }
    place(words).flags = describe({ ...GLOBAL_FLAGS, ...(await load()).flags })
  }
  return [...found.values()]
}

const describe = (flags: Flags): Place['flags'] =>
  Object.entries(flags).flatMap(([name, { help, short, value, choices, negatable }]) => [
    { name, help, short, choices, value: value !== undefined },
    ...(negatable ? [{ name: `no-${name}`, help: `Not: ${help}`, value: false }] : []),
  ])
