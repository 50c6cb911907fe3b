import { runProgram } from './program.ts'
import { prepareCollector } from './collector.ts'

prepareCollector()
process.exitCode = await runProgram(process.argv.slice(2), process)
