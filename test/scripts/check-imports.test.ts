import { describe, expect, it } from 'vitest'
import { breaches } from '../../scripts/check-imports.mjs'

describe('check-imports', () => {
  it.each([
    ['src/memory/service.ts', `import { x } from '../base/hash.ts'`],
    ['src/memory/service.ts', `import { x } from './store/rows.ts'`],
    ['src/app.ts', `import { x } from './memory/service.ts'`],
    ['src/cli/main.ts', `const app = await import('../app.ts')`],
    ['src/client/memory-client.ts', `import { x } from '../base/errors.ts'`],
    ['src/memory/store/cells.ts', 'const sql = `SELECT id FROM cells`'],
    ['src/config/load.ts', `const home = process.env['HOME']`],
    ['src/base/clock.ts', `const now = Date.now()`],
    ['src/memory/recall.ts', `// SELECT the best; Date.now() is not asked, from '../app.ts'`],
    ['src/memory/recall.ts', `const day = new Date(ms)`],
    ['src/memory/recall.ts', `const hint = 'select one or update it'`],
  ])('accepts %s: %s', (file, source) => {
    expect(breaches(file, source)).toEqual([])
  })

  it.each([
    ['src/memory/recall.ts', `import { x } from '../kernel/claim.ts'`, 'the service memory imports the service kernel'],
    ['src/memory/recall.ts', `import { x } from '../app.ts'`, 'memory imports upwards: src/app.ts'],
    ['src/memory/recall.ts', `export { x } from '../cli/output.ts'`, 'memory imports upwards'],
    ['src/memory/recall.ts', `const x = await import('../console/pages.ts')`, 'memory imports upwards'],
    ['src/base/hash.ts', `import type { X } from '../database/database.ts'`, 'base imports upwards'],
    ['src/client/types.ts', `import type { X } from '../database/database.ts'`, 'client/ knows only base/'],
    ['src/memory/recall.ts', `import '../../test/support/server.ts'`, 'outside src/'],
    ['src/memory/recall.ts', `import { x } from '../attic/x.ts'`, 'a room without a floor'],
    ['src/memory/recall.ts', 'const sql = `\n  SELECT id FROM cells`', 'SQL outside a store/'],
    ['src/memory/recall.ts', `run('DELETE FROM cells')`, 'SQL outside a store/'],
    ['src/memory/recall.ts', `run("UPDATE cells SET x = 1")`, 'SQL outside a store/'],
    ['src/memory/recall.ts', `const key = process.env.KEY`, 'process.env outside'],
    ['src/memory/recall.ts', `const t = Date.now()`, 'a clock or chance'],
    ['src/memory/recall.ts', `const t = new Date()`, 'a clock or chance'],
    ['src/memory/recall.ts', `const t = Math.random()`, 'a clock or chance'],
  ])('refuses %s: %s', (file, source, text) => {
    const found = breaches(file, source)
    expect(found).toHaveLength(1)
    expect(found[0]).toContain(text)
  })

  it('names the line', () => {
    expect(breaches('src/memory/recall.ts', '\n/* one\ntwo */\nconst t = Date.now()')[0]).toMatch(
      /^src\/memory\/recall.ts:4: /,
    )
  })
})
