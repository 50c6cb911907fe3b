# Lets a model sort support tickets, and writes a report that a person reads.
#   mem run docs/examples/triage.hcl --secret key=env:MODEL_KEY --input model_url=https://api.example.com/v1 \
#     --input 'tickets=[{"id": "T-1", "text": "I cannot log in"}]'
# Try it without a model: --mock judge=answer.json, with {"json": {"urgency": "high", "team": "accounts", "why": "…"}}
workflow "triage" {
  concurrency = 4

  input "tickets" {
    type = list(object({ id = string, text = string }))
    default = [
      { id = "T-1", text = "I cannot log in since this morning." },
      { id = "T-2", text = "Is there a dark mode?" },
    ]
  }

  input "model_url" {
    type        = string
    description = "An OpenAI-compatible endpoint"
  }

  input "model" {
    type    = string
    default = "small"
  }

  locals {
    order = { high = 1, normal = 2, low = 3 }
  }

  node manual start {}

  node loop each {
    items       = input.tickets
    itemVar     = "ticket"
    concurrency = 4
    # one ticket that the model cannot judge does not stop the others
    onItemError = "continue"
  }

  node ai judge {
    provider     = "openai-compatible"
    baseUrl      = input.model_url
    model        = input.model
    apiKey       = secret.key
    temperature  = 0
    systemPrompt = "You sort support tickets. Answer in JSON with urgency, team and why."
    # what customers write is data: it is sent as it is, never evaluated
    prompt         = var.ticket.text
    responseFormat = "json"
    schema = {
      type       = "object"
      properties = { urgency = { enum = ["high", "normal", "low"] }, team = { type = "string" }, why = { type = "string" } }
      required   = ["urgency", "team", "why"]
    }

    retry {}
  }

  node transform judged {
    template = merge(prev.json, { id = var.ticket.id })
  }

  node join all {}

  node sort by_urgency {
    items = [for ticket in nodes.all.output.results : ticket if ticket != null]
    by    = [local.order[item.urgency], item.id]
  }

  node transform report {
    template = {
      tickets = nodes.by_urgency.output.items
      failed  = [for failure in try(nodes.all.output.errors, []) : input.tickets[failure.index].id]
      text    = join("\n", [for t in nodes.by_urgency.output.items : "${upper(t.urgency)} ${t.id} for ${t.team}: ${t.why}"])
    }
  }

  edge start each {}
  edge each judge {}
  edge judge judged {}
  edge judged all {}
  edge all by_urgency {}
  edge by_urgency report {}
}
