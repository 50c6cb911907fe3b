import { prepareCollector } from './collector.ts'
import { runProgram } from './program.ts'

prepareCollector()
process.exitCode = await runProgram(process.argv.slice(2), process)
