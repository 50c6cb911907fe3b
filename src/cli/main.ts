import { setFlagsFromString } from 'node:v8'
import { runProgram } from './program.ts'

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
process.exitCode = await runProgram(process.argv.slice(2), process)
