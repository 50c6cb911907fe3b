import { runProgram } from './program.ts'

// A reader that went away (`mem list | head -1`) is no failure.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    process.exit()
  })
}

process.exitCode = await runProgram(process.argv.slice(2), process)
