# Does the same request for every entry of a list, several at once, and tells which of them failed. One that fails stops
# none of the others; the run succeeds and lists it under toleratedFailures.
#   mem run docs/examples/fan-out.hcl --input url=https://api.example.com/sites --input 'sites=["berlin", "lyon"]'
workflow "fan_out" {
  input "url" {
    type        = string
    description = "Below it, each entry has an address of its own"
  }

  input "sites" {
    type    = set(string)
    default = ["berlin", "lyon", "oslo"]
  }

  node manual start {}

  node loop each {
    items       = input.sites
    itemVar     = "site"
    concurrency = 8
    onItemError = "continue"
  }

  node http notify {
    url    = "${input.url}/${replace(urlencode(var.site), "+", "%20")}"
    method = "POST"
    body   = { site = var.site, run = run.id }

    retry {
      attempts = 3
      backoff  = "100ms"
    }
  }

  node join done {}

  # results are in the order of the items; what failed is null there, and told in errors
  node transform summary {
    template = {
      done   = length([for result in nodes.done.output.results : result if result != null])
      failed = { for failure in try(nodes.done.output.errors, []) : tolist(input.sites)[failure.index] => failure.error.message }
    }
  }

  edge start each {}
  edge each notify {}
  edge notify done {}
  edge done summary {}
}
