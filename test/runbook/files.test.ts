import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fileAccess } from '../../src/runbook/files.ts'

let root: string
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'files-'))
  mkdirSync(join(root, 'flow'))
  mkdirSync(join(root, 'other'))
  writeFileSync(join(root, 'flow', 'a.txt'), 'a')
  writeFileSync(join(root, 'other', 'b.txt'), 'b')
  symlinkSync(join(root, 'other', 'b.txt'), join(root, 'flow', 'link'))
  writeFileSync(join(root, 'flow', 'large'), Buffer.alloc(10 * 1024 * 1024 + 1))
})
afterAll(() => rmSync(root, { recursive: true }))

test('runbook#111 files outside and links out are refused; --allow-path', () => {
  const files = fileAccess(join(root, 'flow', 'w.hcl'))
  expect(files.readFile('a.txt').toString()).toBe('a')
  expect(files.fileExists('none')).toBe(false)
  expect(files.fileExists('.')).toBe(false)
  expect(() => files.readFile('none')).toThrow('no file none')
  expect(() => files.readFile('large')).toThrow('larger than 10 MiB')
  for (const path of ['../other/b.txt', 'link', '/etc/hostname', join(root, 'other', 'b.txt')]) {
    expect(() => files.readFile(path)).toThrow('--allow-path')
  }
  const allowed = fileAccess(join(root, 'flow', 'w.hcl'), [join(root, 'other')])
  expect(allowed.readFile('link').toString()).toBe('b')
})
