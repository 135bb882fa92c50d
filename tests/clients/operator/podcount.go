// What kubebuilder makes of `create api --group zouxapp --version v1 --kind PodCount`, with a reconciler that copies the
// count that is wanted into the status, and prints a line each time it is called.
package main

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/scheme"
)

type PodCountSpec struct {
	Count int `json:"count,omitempty"`
}

type PodCountStatus struct {
	Count int `json:"count,omitempty"`
}

type PodCount struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   PodCountSpec   `json:"spec,omitempty"`
	Status PodCountStatus `json:"status,omitempty"`
}

type PodCountList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PodCount `json:"items"`
}

func (in *PodCount) DeepCopyObject() runtime.Object {
	out := *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

func (in *PodCountList) DeepCopyObject() runtime.Object {
	out := *in
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = make([]PodCount, len(in.Items))
	for place := range in.Items {
		out.Items[place] = *in.Items[place].DeepCopyObject().(*PodCount)
	}
	return &out
}

func countPods(config *rest.Config) {
	known := runtime.NewScheme()
	builder := &scheme.Builder{GroupVersion: schema.GroupVersion{Group: "zouxapp.github.com", Version: "v1"}}
	check(builder.Register(&PodCount{}, &PodCountList{}).AddToScheme(known))
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  known,
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	check(err)
	check(ctrl.NewControllerManagedBy(manager).For(&PodCount{}).Complete(&podCounter{manager.GetClient()}))
	check(manager.Start(ctrl.SetupSignalHandler()))
}

type podCounter struct{ client.Client }

func (c *podCounter) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	count := &PodCount{}
	if err := c.Get(ctx, request.NamespacedName, count); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	fmt.Println("reconcile", request.NamespacedName, count.Spec.Count)
	count.Status.Count = max(count.Spec.Count, 0)
	return ctrl.Result{}, c.Status().Update(ctx, count)
}
