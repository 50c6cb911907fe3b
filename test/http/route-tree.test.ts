import { expect, test } from 'vitest'
import { RouteTree } from '../../src/http/route-tree.ts'

const PATTERNS = [
  '',
  '/',
  '/runs',
  '/runs/:id',
  '/runs/admission',
  '/runs/:id/turns/:turn',
  '/runs/:other/log',
  '/edges/::batch',
  '/edges/:id',
  '/memories/:id(^[^:@]+)',
  '/memories/:id(^[^:@]+)::append',
  '/memories/:id(^[^:@]+)@:mark',
  '/files/a.b/:name',
]

function find(path: string): [pattern: string, params: Record<string, string>] | undefined {
  const tree = new RouteTree<string>(() => '')
  for (const pattern of PATTERNS) tree.at(pattern)
  const found = tree.find(path)
  return found && [found.pattern, found.params]
}

test.each([
  ['', '', {}],
  ['/', '/', {}],
  ['/runs', '/runs', {}],
  ['/runs/admission', '/runs/admission', {}],
  ['/runs/admission/log', '/runs/:other/log', { other: 'admission' }],
  ['/runs/r1/turns/2', '/runs/:id/turns/:turn', { id: 'r1', turn: '2' }],
  ['/runs/a%2Fb%20c', '/runs/:id', { id: 'a/b c' }],
  ['/r%75ns', '/runs', {}],
  ['/edges/:batch', '/edges/::batch', {}],
  ['/edges/x', '/edges/:id', { id: 'x' }],
  ['/memories/m:append', '/memories/:id(^[^:@]+)::append', { id: 'm' }],
  ['/memories/m@3', '/memories/:id(^[^:@]+)@:mark', { id: 'm', mark: '3' }],
  ['/memories/m%0An', '/memories/:id(^[^:@]+)', { id: 'm\nn' }],
  ['/files/a.b/__proto__', '/files/a.b/:name', { name: '__proto__' }],
])('%s is of %s', (path, pattern, params) => {
  expect(find(path)).toEqual([pattern, params])
})

test.each([
  ['/run'],
  ['/runs/'],
  ['//runs'],
  ['/runs//turns/2'],
  ['/runs/a%00b'],
  ['/runs/a/b'],
  ['/memories/m:prepend'],
  ['/memories/:append'],
  ['/memories/m@'],
  ['/files/aXb/n'],
])('%s is of none', (path) => {
  expect(find(path)).toBeUndefined()
})

test('what is known of a pattern is made once, and apart from that of others', () => {
  const tree = new RouteTree<string[]>(() => [])
  tree.at('/a/:id').push('one')
  tree.at('/a/:id').push('two')
  tree.at('/a/:id/b').push('three')
  expect(tree.find('/a/x')?.value).toEqual(['one', 'two'])
  expect(tree.find('/a/x/b')?.value).toEqual(['three'])
})
