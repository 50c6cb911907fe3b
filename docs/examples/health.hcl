# Asks a service whether it is well, and says what to do.
#   mem run docs/examples/health.hcl --input url=https://example.com/healthz
workflow "health" {
  timeout = "1m"

  input "url" {
    type        = string
    description = "What to ask"
  }

  node manual start {}

  node http ask {
    url          = input.url
    timeout      = "5s"
    expectStatus = ["2xx"]

    # only time limits, network faults, 429 and 5xx are tried again
    retry {
      attempts = 3
      backoff  = "100ms"
    }
  }

  node transform well {
    template = { state = "well", status = nodes.ask.output.statusCode }
  }

  node switch trouble {
    expression = nodes.ask.error.code
    cases      = ["http_status", "timeout"]
  }

  node transform sick {
    template = { state = "sick", status = nodes.ask.error.details.statusCode }
  }

  node transform away {
    template = { state = "away", why = nodes.ask.error.message }
  }

  node join verdict {}

  node webhook_response answer {
    body = nodes.verdict.output.merged
  }

  edge start ask {}
  edge ask well {}
  edge ask trouble { on = "error" }
  edge trouble sick { condition = "http_status" }
  edge trouble away { condition = "timeout" }
  edge trouble away { condition = "default" }
  edge well verdict {}
  edge sick verdict {}
  edge away verdict {}
  edge verdict answer {}
}
