// Writes src/memory/search/kernel.ts from kernel.wat: node scripts/build-kernel.mjs
import { readFile, writeFile } from 'node:fs/promises'
import wabt from 'wabt'

const folder = new URL('../src/memory/search/', import.meta.url)
const { parseWat } = await wabt()
const { buffer } = parseWat('kernel.wat', await readFile(new URL('kernel.wat', folder)), { simd: true }).toBinary({})
await writeFile(
  new URL('kernel.ts', folder),
  `/** The bytes of kernel.wat. Made by \`node scripts/build-kernel.mjs\`. */
export const KERNEL = Buffer.from(
  '${Buffer.from(buffer).toString('base64')}',
  'base64',
)
`,
)
