import { expect, test } from 'vitest'
import { parseChunkerConfig, split } from '../../../src/memory/chunker/index.ts'

const chunk = (content: string): string[] => split('code-go', parseChunkerConfig('code-go'), content)
const asDefault = (content: string): string[] => split('default', parseChunkerConfig('default'), content)

const HEADER = `// Copyright.

// Package shapes draws.
package shapes

import (
\t"fmt" // for print
\tm "math"
)
import . "strings"`

const DECLARATIONS = [
  `const Pi = 3. // about`,
  `// Shape is drawn.
//
// Always.
type Shape interface {
\tArea() float64 // "quoted {"
}`,
  `var (
\tbrace = '{'
\traw   = \`}
func notMe() {\`
\ttext  = "\\"}"
)`,
  `/* Area of
a circle */
func (c Circle) Area() float64 { return m.Pi *
\tc.r * c.r }`,
  `type Set[K comparable] map[K]struct{}`,
  `func external(x int) (y int)`,
  `var handler = func() {
\tfmt.Println(1)
}
// the end`,
]

test('memory#82 header and one Cell per declaration with its comment', () => {
  const source = `${HEADER}\n\n${DECLARATIONS.join('\n\n')}\n`
  expect(chunk(source)).toEqual([HEADER, ...DECLARATIONS])
  expect(chunk(source.replaceAll('\n', '\r\n'))).toEqual(
    [HEADER, ...DECLARATIONS].map((text) => text.replaceAll('\n', '\r\n')),
  )
  expect(chunk('package a; import "b"; func c() {}; func d() {}')).toEqual([
    'package a; import "b";',
    'func c() {};',
    'func d() {}',
  ])
  expect(chunk('package only // here\n// more')).toEqual(['package only // here\n// more'])
})

test.each([
  'not go at all.\n\nNo.',
  'package a\n\nfunc main() {\n',
  'package a\n\nfunc main( {\n}',
  'package a\n\nfunc {}',
  'package a\n\nx := 1',
  'package a\n\nvar s = "open\n',
  'package a\n\nvar s = `open\n',
  'package a\n\n/* open',
  'package a\n\nvar x =',
  'package a\n}',
  'func a() {}\npackage late',
])('memory#82 broken code goes through default: %j', (source) => {
  expect(chunk(source)).toEqual(asDefault(source))
})

test('8 MiB of one declaration', () => {
  expect(chunk(`package a\nvar x = ${'(1+'.repeat(1 << 20)}0${')'.repeat(1 << 20)}`)).toHaveLength(2)
  expect(chunk(`package a\nvar x = "${'y'.repeat(8 << 20)}"`)).toHaveLength(2)
})
