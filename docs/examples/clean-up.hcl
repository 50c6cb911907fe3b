# Deletes what is older than some days. It only says what it would delete, until it is told to:
#   mem run docs/examples/clean-up.hcl --input url=https://api.example.com/exports
#   mem run docs/examples/clean-up.hcl --input url=https://api.example.com/exports --input apply=true
workflow "clean_up" {
  input "url" {
    type        = string
    description = "Gives a JSON list of {id, created, keep}; DELETE below it removes one"
  }

  input "days" {
    type    = number
    default = 30
  }

  input "apply" {
    type    = bool
    default = false
  }

  locals {
    limit = timeadd(timestamp(), "-${input.days * 24}h")
  }

  node manual start {}

  node http list { url = input.url }

  node filter old {
    items     = nodes.list.output.body
    condition = !try(item.keep, false) && timecmp(item.created, local.limit) < 0
  }

  node if wanted {
    condition = input.apply && nodes.old.output.count > 0
  }

  node loop each {
    items       = nodes.old.output.items
    concurrency = 2
  }

  node http remove {
    url    = "${input.url}/${replace(urlencode(loop.item.id), "+", "%20")}"
    method = "DELETE"
    # what somebody else has deleted meanwhile is gone all the same
    expectStatus = ["2xx", 404]
  }

  node join removed {}

  node transform summary {
    template = {
      applied = input.apply
      old     = nodes.old.output.items[*].id
      removed = try(nodes.removed.output.count, 0)
    }
  }

  edge start list {}
  edge list old {}
  edge old wanted {}
  edge wanted each { condition = "then" }
  edge each remove {}
  edge remove removed {}
  edge removed summary {}
  edge wanted summary { condition = "else" }
}
