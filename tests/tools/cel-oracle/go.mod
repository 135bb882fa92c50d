module cel-oracle

go 1.26

require (
	github.com/blang/semver/v4 v4.0.0
	github.com/google/cel-go v0.26.0
	k8s.io/api v0.36.4
	k8s.io/apiextensions-apiserver v0.36.4
	k8s.io/apimachinery v0.36.4
	k8s.io/apiserver v0.36.4
	k8s.io/dynamic-resource-allocation v0.36.4
	k8s.io/kube-openapi v0.0.0-20260317180543-43fb72c5454a
)
