import { Argument, Command as Parser, CommanderError, Option } from 'commander'
import type { Command, Flag, Flags, InputValue, Io } from './command.ts'
import { reportError } from './error-report.ts'
import { EXIT } from './exit.ts'
import { declareFlags, readFlags, readGivenFlags } from './flags.ts'
import { Output } from './output.ts'
import { GLOBAL_FLAGS, resolveSettings, type Settings } from './settings.ts'
import { NOUNS, SECTIONS, type Entry } from './table.ts'

const OVERVIEW = `
Examples:
  mem serve                                      starts a server on this machine, data in ./data
  mem workspaces create --name notes             prints the new workspace's id, for MEM_WORKSPACE
  mem imprint --text 'The keeper likes rye.'     remembers
  mem recall 'what does the keeper like?'        finds it again

'mem help <command>' tells more about one. 'mem completion bash' makes the Tab key work.`

/** What a run knows of itself so far. */
interface Run {
  io: Io
  /** The command's words, as far as they were recognised. */
  words: string[]
  settings?: Settings
  /** What each parser stands for, and which global flags it takes. */
  entries: Map<Parser, Entry>
  globals: Map<Parser, Flags>
}

/** Runs one command line (without the program's name) and gives its exit code. Contract: memory.md 11. */
export async function runProgram(argv: readonly string[], io: Io): Promise<number> {
  const run: Run = { io, words: [], entries: new Map(), globals: new Map() }
  try {
    await buildProgram(run).parseAsync(argv, { from: 'user' })
    return EXIT.ok
  } catch (error) {
    if (error instanceof CommanderError && SHOWN.has(error.code)) return error.exitCode
    return reportError(error, run)
  }
}

/** What commander throws after it printed help: asked for, or the answer to a noun without verb. */
const SHOWN: ReadonlySet<string> = new Set(['commander.helpDisplayed', 'commander.help'])

function buildProgram(run: Run): Parser {
  const program = new Parser('mem')
    .description('Memory for agents, and what runs them.')
    .enablePositionalOptions()
    .exitOverride()
    .helpCommand(false)
    .helpOption('-h, --help', 'Show this help')
    .configureOutput({
      writeOut: (text) => void run.io.stdout.write(text),
      writeErr: (text) => void run.io.stderr.write(text),
      outputError: () => {}, // reportError does
    })
    .addHelpText('after', OVERVIEW)
  for (const [title, commands] of Object.entries(SECTIONS)) {
    for (const [path, entry] of Object.entries(commands)) plant(program, run, title, path, entry)
  }
  program
    .command('help')
    .helpGroup('Other:')
    .summary('Tell about a command')
    .argument('[command...]')
    .addOption(new Option('--config <file>').hideHelp()) // as every verb of the server takes it (memory.md 11.2)
    .action(async (words: string[]) => {
      run.words = []
      const known = words.length === 0 || program.commands.some((command) => command.name() === words[0])
      await buildProgram(run).parseAsync(known ? [...words, '--help'] : words, { from: 'user' })
    })
  takeGlobalFlags(program, run, {})
  return program
}

/** Puts a command into the tree, by its name only. */
function plant(program: Parser, run: Run, title: string, path: string, entry: Entry): void {
  let parser = program
  let group = title
  for (const [i, word] of path.split(' ').entries()) {
    const noun = path.split(' ', i + 1).join(' ')
    parser =
      parser.commands.find((command) => command.name() === word) ??
      parser
        .command(word)
        .helpCommand(false)
        .helpGroup(group)
        .description(NOUNS[noun] ?? entry.summary)
    group = 'Commands:'
  }
  run.entries.set(parser, entry)
}

/** Completes the parser that the command line turned out to mean: its module is loaded now, and not before. */
async function open(parser: Parser, run: Run): Promise<void> {
  run.words.push(parser.name())
  const command = await run.entries.get(parser)?.load()
  if (command) declareCommand(parser, run, command)
  takeGlobalFlags(parser, run, command?.flags ?? {})
}

/** A verb's own flag of the same name wins over a global one. */
function takeGlobalFlags(parser: Parser, run: Run, own: Flags): void {
  const flags = Object.fromEntries(Object.entries(GLOBAL_FLAGS).filter(([name]) => !(name in own)))
  run.globals.set(parser, flags)
  declareFlags(parser, flags, { hidden: parser.parent !== null })
  for (const [name, flag] of Object.entries<Flag>(GLOBAL_FLAGS)) {
    if (own[name] && !own[name].short && flag.short) keepShort(parser, name, flag, flag.short)
  }
  parser.hook('preSubcommand', (_, subcommand) => open(subcommand, run))
}

/** Of a global flag whose name the verb has taken, the short form still means the global one. */
function keepShort(parser: Parser, name: string, { value, help, choices = [] }: Flag, short: string): void {
  parser.addOption(new Option(`-${short} <${value}>`, help).choices(choices).hideHelp())
  parser.on(`option:${short}`, (text: string) => parser.parent?.setOptionValueWithSource(name, text, 'cli'))
}

function declareCommand(parser: Parser, run: Run, command: Command): void {
  const { args = {}, flags = {}, notes, examples } = command
  for (const [name, { help, choices, optional, many }] of Object.entries(args)) {
    const form = many ? `${name}...` : name
    const argument = new Argument(optional ? `[${form}]` : `<${form}>`, help)
    parser.addArgument(choices ? argument.choices(choices) : argument)
  }
  declareFlags(parser, flags)
  if (notes !== undefined) parser.description(`${parser.description()}\n\n${notes}`)
  const lines = examples.map((line) => `  ${line.includes('mem ') ? '' : 'mem '}${line}`)
  parser.addHelpText('after', `  (and those of 'mem --help', anywhere)\n\nExamples:\n${lines.join('\n')}`)
  // A noun that does something itself: a word more is a verb that there is not.
  const hasVerbs = parser.commands.length > 0
  if (hasVerbs) parser.allowExcessArguments()
  parser.action(async () => {
    const [unknown] = hasVerbs ? parser.args.slice(Object.keys(args).length) : []
    if (unknown !== undefined) parser.error(`error: unknown command '${unknown}'`)
    run.settings = resolveSettings(readGlobalFlags(parser, run), run.io)
    const values = Object.fromEntries(
      Object.entries(args).map(([name, { many }], i) => [name, many ? parser.args.slice(i) : parser.args[i]]),
    )
    const context = { io: run.io, settings: run.settings, output: new Output(run.io, run.settings) }
    await command.run(context, { ...values, ...readFlags(parser, flags) })
  })
}

/** Those of the verb win over those of its noun, and these over those before the noun. */
function readGlobalFlags(parser: Parser, run: Run): Record<string, InputValue> {
  const outer = parser.parent ? readGlobalFlags(parser.parent, run) : {}
  return { ...outer, ...readGivenFlags(parser, run.globals.get(parser) ?? {}) }
}
