import { runProgram } from './program.ts'
import { keepYoungGenerationSmall } from './young-generation.ts'

keepYoungGenerationSmall()
process.exitCode = await runProgram(process.argv.slice(2), process)
