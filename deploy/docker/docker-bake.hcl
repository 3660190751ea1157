# `docker buildx bake -f deploy/docker/docker-bake.hcl` from the root of the sources: the
# image for CPUs; with `cuda` behind it the one for GPUs.
variable "IMAGE" {
  default = "thinwire"
}

variable "VERSION" {
  default = "local"
}

variable "COMMIT" {
  default = "unknown"
}

variable "SOURCE" {
  default = "unknown"
}

group "default" {
  targets = ["cpu"]
}

target "image" {
  context    = "."
  dockerfile = "deploy/docker/Dockerfile"
  platforms  = ["linux/amd64"]
  args = {
    COMMIT  = COMMIT
    VERSION = VERSION
    SOURCE  = SOURCE
  }
}

target "cpu" {
  inherits = ["image"]
  target   = "cpu"
  tags     = ["${IMAGE}:${VERSION}"]
}

target "cuda" {
  inherits = ["image"]
  target   = "cuda"
  tags     = ["${IMAGE}:${VERSION}-cuda"]
}
