import { expect, test } from 'vitest'
import { BodyError, parseJsonObject } from '../../src/http/json-body.ts'

test.each([
  '{"password":correct horse battery}',
  '{"password":"correct horse battery"staple}',
  '{"password":correct,\n"a":1}',
])('what is wrong with %s is told without what stands around it', (text) => {
  const read = () => parseJsonObject(Buffer.from(text))
  expect(read).toThrow(BodyError)
  expect(read).toThrow(/^the body is not valid JSON: (?!.*(?:pass|corr|horse|stapl))/)
})
