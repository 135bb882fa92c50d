package main

import (
	"context"
	"errors"

	"github.com/google/cel-go/common/types/ref"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/library"
)

// decision is what the authorizer answers to the checks that it names. Empty members match everything.
type decision struct {
	User        string `json:"user,omitempty"`
	Verb        string `json:"verb,omitempty"`
	Path        string `json:"path,omitempty"`
	Group       string `json:"group,omitempty"`
	Resource    string `json:"resource,omitempty"`
	Subresource string `json:"subresource,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name,omitempty"`
	// Decision is allow, deny or empty for no opinion.
	Decision string `json:"decision,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Error    string `json:"error,omitempty"`
}

type decisions []decision

func (d decisions) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	matches := func(want, have string) bool { return want == "" || want == have }
	for _, one := range d {
		if !matches(one.User, a.GetUser().GetName()) || !matches(one.Verb, a.GetVerb()) || !matches(one.Path, a.GetPath()) ||
			!matches(one.Group, a.GetAPIGroup()) || !matches(one.Resource, a.GetResource()) || !matches(one.Subresource, a.GetSubresource()) ||
			!matches(one.Namespace, a.GetNamespace()) || !matches(one.Name, a.GetName()) {
			continue
		}
		var err error
		if one.Error != "" {
			err = errors.New(one.Error)
		}
		switch one.Decision {
		case "allow":
			return authorizer.DecisionAllow, one.Reason, err
		case "deny":
			return authorizer.DecisionDeny, one.Reason, err
		}
		return authorizer.DecisionNoOpinion, one.Reason, err
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// The request that `authorizer` and `authorizer.requestResource` stand for.
type requested struct{}

func (requested) GetName() string        { return "frontend" }
func (requested) GetNamespace() string   { return "shop" }
func (requested) GetSubresource() string { return "status" }
func (requested) GetResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
}

func authorizers(d decisions) (ref.Val, ref.Val) {
	who := &user.DefaultInfo{Name: "alice", Groups: []string{"system:authenticated"}}
	return library.NewAuthorizerVal(who, d), library.NewResourceAuthorizerVal(who, d, requested{})
}
