import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readElements } from '../../../src/memory/importers/json-elements.ts'
import { piecesOf } from '../export/place.ts'

async function elementsOf(text: string, pieces = 7): Promise<{ line: number; json: string }[]> {
  const found = []
  for await (const element of readElements(piecesOf(text, pieces), 'results')) found.push(element)
  return found
}
const parsed = async (text: string, pieces?: number): Promise<unknown[]> =>
  (await elementsOf(text, pieces)).map(({ json }) => JSON.parse(json))

describe('elements of a JSON list', () => {
  it('are those that JSON.parse gives, in a list and under a key, however the bytes come', async () => {
    const list = fc.array(fc.jsonValue())
    await fc.assert(
      fc.asyncProperty(
        list,
        fc.jsonValue(),
        fc.constantFrom(0, 2),
        fc.integer({ min: 1, max: 50 }),
        async (items, other, indent, pieces) => {
          expect(await parsed(JSON.stringify(items, null, indent), pieces)).toEqual(JSON.parse(JSON.stringify(items)))
          const under = {
            next: 'results',
            before: other,
            nested: { results: ['no'] },
            results: items,
            relations: [other],
          }
          expect(await parsed(JSON.stringify(under, null, indent), pieces)).toEqual(JSON.parse(JSON.stringify(items)))
        },
      ),
    )
  })

  it('know the line they begin in', async () => {
    expect(await elementsOf('{"count": 2,\n "results": [\n  {"id":\n 1},\n\n  {"id": 2} ]\n}')).toMatchObject([
      { line: 3 },
      { line: 6 },
    ])
  })

  it.each([
    ['', /neither a JSON list/],
    ['memories', /neither a JSON list/],
    ['{"items": [1]}', /neither a JSON list/],
    ['{"results": {"results": [1]}}', /neither a JSON list/],
    ['[{"id": 1},\n{"id"', /cut off in line 2/],
    ['{"results": [1]', /cut off in line 1/],
  ])('are not in %j', async (text, message) => {
    await expect(elementsOf(text)).rejects.toThrow(message)
  })
})
