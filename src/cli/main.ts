import { setFlagsFromString } from 'node:v8'
import { runProgram } from './program.ts'

// What loading leaves behind must not make the young generation grow: an idle server takes 10 MB less. A busy one gets
// its growth back (commands/serve.ts).
setFlagsFromString('--semi-space-growth-factor=1')
process.exitCode = await runProgram(process.argv.slice(2), process)
