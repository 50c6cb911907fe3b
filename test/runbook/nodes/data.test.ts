import { describe, expect, test } from 'vitest'
import { edges, found, node, output, run } from '../support.ts'

/** Output of a node `n` with these attributes, or the code of its error. */
async function result(type: string, attributes: string): Promise<unknown> {
  const report = await run(`node ${type} n {\n${attributes}\n}`)
  return node(report, 'n')?.error?.code ?? output(report, 'n')
}

describe('set', () => {
  test('runbook#85 set in all forms', async () => {
    expect(await result('set', 'name = "x"\nvalue = [1]')).toEqual({ x: [1] })
    expect(await result('set', 'variable = "x"\nvalue = true')).toEqual({ x: true })
    expect(await result('set', 'variables = { a = 1, b = "2" }')).toEqual({ a: 1, b: '2' })
    expect(await result('set', 'variables = [{ key = "a", value = null }]')).toEqual({ a: null })
    const report = await run(`node set s {
      name = "x"
      value = { k = [1, 2] }
    }
    node transform t { template = { x = var.x } }
    ${edges('s t')}`)
    expect(output(report, 't')).toEqual({ x: { k: [1, 2] } })
  })
})

describe('merge', () => {
  test('runbook#86 shallow, deep, concat; null is passed over', async () => {
    const maps = 'sources = [{ a = { x = 1 }, b = 1 }, null, { a = { y = 2 }, b = 2 }]'
    expect(await result('merge', maps)).toEqual({ a: { y: 2 }, b: 2 })
    expect(await result('merge', `${maps}\nstrategy = "deep"`)).toEqual({ a: { x: 1, y: 2 }, b: 2 })
    expect(await result('merge', 'sources = [[1], null, [2, 3]]\nstrategy = "concat"')).toEqual({
      result: [1, 2, 3],
      count: 3,
    })
    expect(await result('merge', 'sources = [{ a = 1 }, [1]]')).toBe('data_invalid')
    expect(await result('merge', 'sources = [1]\nstrategy = "concat"')).toBe('data_invalid')
  })
})

describe('filter, sort, aggregate', () => {
  test('runbook#87 filter by expression and by text condition', async () => {
    expect(await result('filter', 'items = [3, 1, 2]\ncondition = item > 1 && index < 2')).toEqual({
      items: [3],
      count: 1,
    })
    expect(
      await result('filter', 'items = "[{\\"s\\":\\"ok\\"},{\\"s\\":\\"no\\"}]"\ncondition = "{{item.s}} == ok"'),
    ).toEqual({ items: [{ s: 'ok' }], count: 1 })
    expect(await result('filter', 'items = toset(["b", "a"])\ncondition = true')).toEqual({
      items: ['a', 'b'],
      count: 2,
    })
    expect(await result('filter', 'items = { a = 1 }\ncondition = true')).toBe('items_invalid')
    expect(await result('filter', 'items = "no json"\ncondition = true')).toBe('items_invalid')
    expect(await result('filter', 'items = [1]\ncondition = item.x')).toBe('expression_error')
  })

  test('runbook#87 sort by several keys, mixed types, stable', async () => {
    const people = 'items = [{ n = "b", a = 2 }, { n = "a", a = 2 }, { n = "c", a = 1 }]'
    const names = async (attributes: string): Promise<unknown> => {
      const sorted = await result('sort', `${people}\n${attributes}`)
      return (sorted as { items: { n: string }[] }).items.map(({ n }) => n).join('')
    }
    expect(await names('by = [item.a, item.n]')).toBe('cab')
    expect(await names('field = "a"')).toBe('cba')
    expect(await names('field = "a"\norder = "desc"')).toBe('bac')
    expect(await result('sort', 'items = ["10", 9, null, true, {}, [1]]\nby = item')).toEqual({
      items: [null, true, 9, '10', [1], {}],
      count: 6,
    })
    expect(await result('sort', 'items = [[2, 1], [1, 5]]\nfield = "1"')).toMatchObject({
      items: [
        [2, 1],
        [1, 5],
      ],
    })
    expect(await result('sort', 'items = []\nfield = prev')).toBe('config_invalid')
  })

  test('runbook#87 aggregate: every operation', async () => {
    const results: Record<string, unknown> = {}
    for (const operation of ['count', 'sum', 'avg', 'min', 'max', 'first', 'last']) {
      results[operation] = await result(
        'aggregate',
        `items = [{ v = 4 }, { v = "1" }, { v = "x" }]\nfield = "v"\noperation = "${operation}"`,
      )
    }
    expect(results).toEqual({
      count: { result: 3, count: 3, skipped: 0 },
      sum: { result: 5, count: 2, skipped: 1 },
      avg: { result: 2.5, count: 2, skipped: 1 },
      min: { result: 1, count: 2, skipped: 1 },
      max: { result: 4, count: 2, skipped: 1 },
      first: { result: 4, count: 3, skipped: 0 },
      last: { result: 'x', count: 3, skipped: 0 },
    })
    expect(await result('aggregate', 'items = []\noperation = "sum"\nvalue = item')).toMatchObject({ result: 0 })
    expect(await result('aggregate', 'items = []\noperation = "max"\nvalue = item')).toMatchObject({ result: null })
    expect(await result('aggregate', 'items = [1]\noperation = lower("SUM")')).toBe('config_invalid')
  })
})

describe('transform, delay, webhook_response', () => {
  test('runbook#88 transform keeps types; a delay of 25 h is refused', async () => {
    expect(await result('transform', 'template = { n = 1, l = [true], t = "{{run.id}}" }')).toEqual({
      n: 1,
      l: [true],
      t: 'r1',
    })
    expect(await result('transform', 'template = "x ${1 + 1}"')).toEqual({ result: 'x 2' })
    expect(await result('delay', 'duration = "25h"')).toBe('config_invalid')
  })

  test('runbook#100 webhook_response is in the report', async () => {
    const report = await run(`node webhook_response a { body = "first" }
      node webhook_response b {
        statusCode = "201"
        body = { ok = true }
        headers = { X-Count = 2, X-None = null }
      }
      ${edges('a b')}`)
    const response = {
      statusCode: 201,
      contentType: 'application/json',
      body: { ok: true },
      headers: { 'X-Count': '2' },
    }
    expect(JSON.parse(JSON.stringify(report.response))).toEqual(response)
    const inLoop = await run(`node loop l {
        items       = [1, 2]
        concurrency = 2
      }
      node webhook_response r { body = loop.item }
      ${edges('l r')}`)
    expect(inLoop.response).toMatchObject({ body: 2 })
    expect(found('node webhook_response r { statusCode = 600 }').map(({ code }) => code)).toContain('RB211')
  })
})
