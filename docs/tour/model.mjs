// A model with one idea, that speaks OpenAI's chat completions: it wants to send a letter, hears what a person says to that,
// and ends when the letter is sent.
import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'

const [port = '7802'] = process.argv.slice(2)

/** What to do next, after what became of the step before. */
function nextStep({ goal, results, guidance }) {
  const last = results.at(-1)
  if (last?.status === 'succeeded')
    return { status: 'completed', summary: 'The letter is sent', output: last.output ?? {} }
  if (last?.status === 'rejected')
    return { status: 'failed', summary: 'Nothing is sent', error: { code: 'rejected', message: last.error } }
  const wish = last?.error ?? guidance.at(-1)?.instruction
  const text = wish ? `${goal}. ${wish}` : goal
  const to = goal.includes('Ben') ? 'Ben' : 'Pia'
  const action = { bindingId: 'desk', action: 'send', arguments: { to, text }, summary: `Send ${to}: ${text}` }
  return { status: 'running', summary: 'There is a letter to send', action }
}

createServer(async (request, response) => {
  const { messages, tools } = await json(request)
  const turn = JSON.parse(messages[1].content)
  const skillDispositions = turn.skills.map(({ skillRef }) => ({ skillRef, disposition: 'applied', summary: 'Used' }))
  const outcome = { invocationId: turn.invocationId, decisions: [], skillDispositions, ...nextStep(turn) }
  const call = { name: tools[0].function.name, arguments: JSON.stringify(outcome) }
  const message = { role: 'assistant', tool_calls: [{ id: 'call', type: 'function', function: call }] }
  const usage = { prompt_tokens: 500, completion_tokens: 50 }
  response.writeHead(200, { 'Content-Type': 'application/json' })
  response.end(JSON.stringify({ model: 'scripted', choices: [{ index: 0, message }], usage }))
}).listen(Number(port), '127.0.0.1', () => console.log(`the model listens on ${port}`))
