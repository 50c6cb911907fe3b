/** A place on the command line, after these words, and what may follow there. */
export interface Place {
  words: string
  verbs: { name: string; help: string }[]
  flags: {
    name: string
    help: string
    value: boolean
    short?: string | undefined
    choices?: readonly string[] | undefined
  }[]
}

const PROGRAMS = ['mem', 'mem-cli', 'mem-core', 'openseal']

const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

/** Shell patterns of the steps from one place to the next: `' tags'`, `'tags set'`. */
const steps = (places: readonly Place[]): string[] =>
  places.flatMap(({ words, verbs }) => verbs.map(({ name }) => quote(`${words} ${name}`)))

/** `<words>:<flag>` of every flag with known values. */
const choiceCases = (
  places: readonly Place[],
  line: (patterns: string, choices: readonly string[]) => string,
): string =>
  places
    .flatMap(({ words, flags }) =>
      flags.flatMap(({ name, short, choices }) => {
        const spellings = [`--${name}`, ...(short ? [`-${short}`] : [])].map((flag) => quote(`${words}:${flag}`))
        return choices ? [line(spellings.join('|'), choices)] : []
      }),
    )
    .join('\n')

/** What Tab offers in bash: verbs and flags at each place, and the choices of a flag. */
export function bashScript(places: readonly Place[]): string {
  const cases = places.map(({ words, verbs, flags }) => {
    const candidates = [...verbs.map(({ name }) => name), ...flags.map(({ name }) => `--${name}`)]
    return `    ${quote(words)}) candidates=${quote(candidates.join(' '))} ;;`
  })
  return `# mem completion bash: put  eval "$(mem completion bash)"  into ~/.bashrc
_mem() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD - 1]} so_far='' candidates='' word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$so_far $word" in
      ${steps(places).join('|')}) so_far="\${so_far:+$so_far }$word" ;;
    esac
  done
  case "$so_far:$previous" in
${choiceCases(places, (patterns, choices) => `    ${patterns}) COMPREPLY=($(compgen -W ${quote(choices.join(' '))} -- "$current")); return ;;`)}
  esac
  case "$so_far" in
${cases.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$candidates" -- "$current"))
}
complete -o default -F _mem ${PROGRAMS.join(' ')}
`
}

/** The same for zsh, which shows the help beside each. */
export function zshScript(places: readonly Place[]): string {
  const described = (items: readonly { name: string; help: string }[], prefix: string): string =>
    items.map(({ name, help }) => quote(`${prefix}${name}:${help}`)).join(' ')
  const cases = places.map(
    ({ words, verbs, flags }) =>
      `    ${quote(words)}) verbs=(${described(verbs, '')}) flags=(${described(flags, '--')}) ;;`,
  )
  return `#compdef ${PROGRAMS.join(' ')}
# mem completion zsh: put  eval "$(mem completion zsh)"  into ~/.zshrc, behind compinit
_mem() {
  local so_far='' word
  local -a verbs flags
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "$so_far $word" in
      ${steps(places).join('|')}) so_far="\${so_far:+$so_far }$word" ;;
    esac
  done
  case "$so_far:\${words[CURRENT-1]}" in
${choiceCases(places, (patterns, choices) => `    ${patterns}) compadd -- ${choices.join(' ')}; return ;;`)}
  esac
  case "$so_far" in
${cases.join('\n')}
  esac
  if [[ $PREFIX == -* ]]; then
    _describe -o 'flag' flags
  elif (( \${#verbs} )); then
    _describe 'command' verbs
  else
    _files
  fi
}
compdef _mem ${PROGRAMS.join(' ')}
`
}

/** The same for fish. */
export function fishScript(places: readonly Place[]): string {
  const quoted = (text: string): string => `'${text.replaceAll(/['\\]/g, '\\$&')}'`
  const lines = places.flatMap(({ words, verbs, flags }) => {
    const start = `complete -c mem -n ${quoted(`__mem_at ${quoted(words)}`)}`
    return [
      ...verbs.map(({ name, help }) => `${start} -f -a ${name} -d ${quoted(help)}`),
      ...flags.map(({ name, short, help, value, choices }) => {
        const values = choices ? ` -x -a ${quoted(choices.join(' '))}` : value ? ' -r' : ''
        return `${start} -l ${name}${short ? ` -s ${short}` : ''}${values} -d ${quoted(help)}`
      }),
    ]
  })
  return `# mem completion fish: put  mem completion fish | source  into ~/.config/fish/config.fish
function __mem_at
    set -l so_far ''
    for word in (commandline -opc)[2..]
        switch "$so_far $word"
            case ${steps(places).join(' ')}
                set so_far (string trim "$so_far $word")
        end
    end
    test "$so_far" = "$argv[1]"
end
${lines.join('\n')}
${PROGRAMS.slice(1)
  .map((program) => `complete -c ${program} -w mem`)
  .join('\n')}
`
}
