import { setFlagsFromString } from 'node:v8'
import { runQuick } from './quick.ts'

// A reader that went away (`mem list | head -1`) is no failure.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    process.exit()
  })
}

// What loading leaves behind must not make the young generation grow: an idle server takes 10 MB less. A busy one gets
// its growth back (commands/serve.ts).
setFlagsFromString('--semi-space-growth-factor=1')
const words = process.argv.slice(2)
process.exitCode = (await runQuick(words, process)) ?? (await (await import('./program.ts')).runProgram(words, process))
