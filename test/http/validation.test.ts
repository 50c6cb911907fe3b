import { expect, test } from 'vitest'
import * as z from 'zod'
import { describeFault } from '../../src/http/validation.ts'

const schema = z.strictObject({
  name: z.string().min(1).max(3).exactOptional(),
  share: z.number().gt(0).lt(1).exactOptional(),
  count: z.int().min(2).max(5).exactOptional(),
  list: z
    .array(z.enum(['a', 'b']))
    .min(1)
    .max(2)
    .exactOptional(),
  shape: z.union([z.string().min(1, 'must not be empty'), z.array(z.int())]).exactOptional(),
  at: z.strictObject({ x: z.int() }).exactOptional(),
})

test.each([
  [{ name: '' }, 'name must have at least 1 character'],
  [{ name: 'long' }, 'name must have at most 3 characters'],
  [{ name: 3 }, 'name must be a string'],
  [{ share: 0 }, 'share must be more than 0'],
  [{ share: 1 }, 'share must be less than 1'],
  [{ count: 1 }, 'count must be at least 2'],
  [{ count: 6 }, 'count must be at most 5'],
  [{ count: 2.5 }, 'count must be an integer'],
  [{ list: [] }, 'list must have at least 1 item'],
  [{ list: ['a', 'b', 'a'] }, 'list must have at most 2 items'],
  [{ list: ['c'] }, 'list.0 must be one of a, b'],
  [{ shape: 5 }, 'shape must be a string or an array'],
  [{ shape: '' }, 'shape must not be empty'],
  [{ shape: ['x'] }, 'shape.0 must be a number'],
  [{ at: {} }, 'at.x is required'],
  [{ at: { x: 1, y: 2 } }, 'at.y is not a known field'],
  [[], 'it must be an object'],
])('%j: %s', (value, message) => {
  const { error } = schema.safeParse(value)
  expect(error && describeFault(error, value).message).toBe(message)
})
