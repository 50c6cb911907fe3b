import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, test } from 'vitest'
import { splitFrontMatter } from '../../../src/memory/importers/front-matter.ts'
import { linksIn, LinkTargets } from '../../../src/memory/importers/markdown-links.ts'
import { readMarkdown } from '../../../src/memory/importers/markdown.ts'

describe('front matter', () => {
  it.each([
    ['---\ntitle: Bread\ntags: [rye, food]\n---\n# Bread\n', { title: 'Bread', tags: ['rye', 'food'] }, '# Bread\n'],
    ['\ufeff---\r\ntitle: Bread\r\n---\r\nRye.', { title: 'Bread' }, 'Rye.'],
    ['---\n---\nRye.', {}, 'Rye.'],
    ['# Bread\n---\ntitle: no\n---\n', {}, '# Bread\n---\ntitle: no\n---\n'],
    ['---\njust a line\n---\nRye.', {}, '---\njust a line\n---\nRye.'],
    ['---\ntitle: never closed\n', {}, '---\ntitle: never closed\n'],
  ])('of %j', (text, fields, body) => {
    expect(splitFrontMatter(text)).toEqual({ fields, body })
  })

  it('that is no YAML is told', () => {
    expect(() => splitFrontMatter('---\ntitle: [\n---\n')).toThrow(
      /^its front matter is no YAML: .* at line \d, column \d+$/,
    )
  })
})

test('links are found outside code, each once, without fragments', () => {
  const text = [
    'See [[Bread]], [[Bread|the bread]], ![[Lamp#Wick]] and [[notes/Sea^b1]].',
    'Also [the sea](../sea.md#tide "Tide"), [a space](a%20b.md), [brackets](<c d.md>), ![picture](lamp.png).',
    'Not [this](https://example.org/x.md), [that](/root.md), [here](#below), `[[Code]]`, ``[x](y.md)``.',
    '```\n[[Fence]] [f](f.md)\n```',
    'And [[Bread]] again.',
  ].join('\n\n')
  expect(linksIn(text).map(({ target, isWiki }) => (isWiki ? `[[${target}]]` : target))).toEqual([
    '[[Bread]]',
    '[[Lamp]]',
    '[[notes/Sea]]',
    '../sea.md',
    'a b.md',
    'c d.md',
    'lamp.png',
  ])
})

test('names are looked for beside the file, then from the top; paths from the file', () => {
  const targets = new LinkTargets(['a/bread.md', 'a/deep/bread.md', 'b/bread.md', 'b/lamp.md', 'sea.md'])
  const find = (from: string, target: string, isWiki: boolean) => targets.find(from, { target, isWiki })
  expect(find('b/lamp.md', 'Bread', true)).toBe('b/bread.md')
  expect(find('sea.md', 'bread', true)).toBe('a/bread.md')
  expect(find('sea.md', 'deep/Bread.md', true)).toBe('a/deep/bread.md')
  expect(find('sea.md', 'nothing', true)).toBeUndefined()
  expect(find('a/deep/bread.md', '../../sea.md', false)).toBe('sea.md')
  expect(find('a/deep/bread.md', '../../b/lamp', false)).toBe('b/lamp.md')
  expect(find('a/bread.md', '../../sea.md', false)).toBeUndefined()
})

test('a linked folder is read, but not for ever; hidden ones are not', async () => {
  const root = mkdtempSync(join(tmpdir(), 'mem-test-markdown-'))
  onTestFinished(() => rmSync(root, { recursive: true }))
  for (const folder of ['notes/sub', 'notes/.hidden', 'elsewhere']) mkdirSync(join(root, folder), { recursive: true })
  const files = [
    'notes/a.md',
    'notes/sub/b.markdown',
    'notes/.hidden/c.md',
    'notes/.d.md',
    'elsewhere/e.MD',
    'notes/f.txt',
  ]
  for (const file of files) writeFileSync(join(root, file), file)
  symlinkSync(join(root, 'notes'), join(root, 'notes/sub/again'))
  symlinkSync(join(root, 'elsewhere'), join(root, 'notes/linked'))
  symlinkSync(join(root, 'nowhere'), join(root, 'notes/broken'))
  const found: string[] = []
  for await (const item of readMarkdown(join(root, 'notes'))) found.push(`${item.kind} ${item.where}`)
  expect(found).toEqual(['memory a.md', 'memory linked/e.MD', 'memory sub/b.markdown'])
})

test('what only looks like a file is told, and not read without end', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'mem-test-markdown-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  symlinkSync('/dev/zero', join(directory, 'endless.md'))
  const found = []
  for await (const item of readMarkdown(directory)) found.push(item)
  expect(found).toEqual([{ kind: 'fault', where: 'endless.md', message: 'it is no file' }])
})
