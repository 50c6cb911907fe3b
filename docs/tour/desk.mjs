// The service that the agent of the tour writes to: keeps each letter it is sent, and says how many it has.
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'

const [port = '7801', file = 'letters.jsonl'] = process.argv.slice(2)
const TOKEN = readFileSync('desk.token', 'utf8').trim()

const letters = () => (existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [])

createServer(async (request, response) => {
  const answer = (status, body) => response.writeHead(status).end(`${JSON.stringify(body)}\n`)
  if (request.headers.authorization !== `Bearer ${TOKEN}`) return answer(403, { error: 'who are you?' })
  const { arguments: letter } = JSON.parse(await text(request))
  appendFileSync(file, `${JSON.stringify({ key: request.headers['idempotency-key'], ...letter })}\n`)
  answer(200, { number: letters().length })
}).listen(Number(port), '127.0.0.1', () => console.log(`the desk listens on ${port}`))
