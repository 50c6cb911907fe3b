import { runQuick } from './quick.ts'

// A reader that went away (`mem list | head -1`) is no failure.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    process.exit()
  })
}

const words = process.argv.slice(2)
process.exitCode = (await runQuick(words, process)) ?? (await (await import('./program.ts')).runProgram(words, process))
