// A resource of two versions, as kubebuilder's `create webhook --defaulting --programmatic-validation --conversion` leaves
// it: the second version is the hub. `operator KUBECONFIG ships PORT FOLDER` serves the webhooks on loopback, with the
// certificate of the folder, and writes into the status of each ship what its size is.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

type ShipV1 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ShipV1Spec `json:"spec,omitempty"`
	Status ShipStatus `json:"status,omitempty"`
}

type ShipV1Spec struct {
	Oars int `json:"oars,omitempty"`
	// Names with commas between them.
	Crew string `json:"crew,omitempty"`
}

type ShipV2 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ShipV2Spec `json:"spec,omitempty"`
	Status ShipStatus `json:"status,omitempty"`
}

type ShipV2Spec struct {
	Drive Drive    `json:"drive,omitempty"`
	Crew  []string `json:"crew,omitempty"`
}

type Drive struct {
	Oars int `json:"oars,omitempty"`
}

type ShipStatus struct {
	Size string `json:"size,omitempty"`
}

type ShipV2List struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ShipV2 `json:"items"`
}

func (in *ShipV1) DeepCopyObject() runtime.Object {
	out := *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

func (in *ShipV2) DeepCopyObject() runtime.Object {
	out := *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Crew = append([]string(nil), in.Spec.Crew...)
	return &out
}

func (in *ShipV2List) DeepCopyObject() runtime.Object {
	out := *in
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = make([]ShipV2, len(in.Items))
	for place := range in.Items {
		out.Items[place] = *in.Items[place].DeepCopyObject().(*ShipV2)
	}
	return &out
}

func (*ShipV2) Hub() {}

func (in *ShipV1) ConvertTo(hub conversion.Hub) error {
	out := hub.(*ShipV2)
	out.ObjectMeta, out.Status = in.ObjectMeta, in.Status
	out.Spec.Drive.Oars = in.Spec.Oars
	if in.Spec.Crew != "" {
		out.Spec.Crew = strings.Split(in.Spec.Crew, ",")
	}
	return nil
}

func (out *ShipV1) ConvertFrom(hub conversion.Hub) error {
	in := hub.(*ShipV2)
	out.ObjectMeta, out.Status = in.ObjectMeta, in.Status
	out.Spec = ShipV1Spec{Oars: in.Spec.Drive.Oars, Crew: strings.Join(in.Spec.Crew, ",")}
	return nil
}

func serveShips(config *rest.Config) {
	group := "fleet.example.com"
	second := schema.GroupVersion{Group: group, Version: "v2"}
	known := runtime.NewScheme()
	known.AddKnownTypeWithName(schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Ship"}, &ShipV1{})
	known.AddKnownTypeWithName(second.WithKind("Ship"), &ShipV2{})
	known.AddKnownTypeWithName(second.WithKind("ShipList"), &ShipV2List{})
	metav1.AddToGroupVersion(known, second)

	port, err := strconv.Atoi(os.Args[3])
	check(err)
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:        known,
		Metrics:       metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: port, CertDir: os.Args[4]}),
	})
	check(err)
	check(ctrl.NewWebhookManagedBy(manager, &ShipV2{}).
		WithDefaulter(shipDefaults{}).
		WithValidator(shipRules{}).
		Complete())
	check(ctrl.NewControllerManagedBy(manager).For(&ShipV2{}).Complete(&shipyard{manager.GetClient()}))
	check(manager.Start(ctrl.SetupSignalHandler()))
}

type shipDefaults struct{}

func (shipDefaults) Default(_ context.Context, ship *ShipV2) error {
	if len(ship.Spec.Crew) == 0 {
		ship.Spec.Crew = []string{"captain"}
	}
	return nil
}

type shipRules struct{}

func (shipRules) ValidateCreate(_ context.Context, ship *ShipV2) (admission.Warnings, error) {
	if ship.Spec.Drive.Oars%2 != 0 {
		return nil, errors.New("a ship with an odd number of oars goes in circles")
	}
	if len(ship.Spec.Crew) > ship.Spec.Drive.Oars {
		return admission.Warnings{"some of the crew are idle"}, nil
	}
	return nil, nil
}

func (r shipRules) ValidateUpdate(ctx context.Context, old, ship *ShipV2) (admission.Warnings, error) {
	if ship.Spec.Drive.Oars < old.Spec.Drive.Oars {
		return nil, fmt.Errorf("oars are not thrown away: %d of %d are left", ship.Spec.Drive.Oars, old.Spec.Drive.Oars)
	}
	return r.ValidateCreate(ctx, ship)
}

func (shipRules) ValidateDelete(_ context.Context, ship *ShipV2) (admission.Warnings, error) {
	if ship.Labels["sinkable"] != "yes" {
		return nil, errors.New("unsinkable")
	}
	return nil, nil
}

type shipyard struct{ client.Client }

func (s *shipyard) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	ship := &ShipV2{}
	if err := s.Get(ctx, request.NamespacedName, ship); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	before := ship.DeepCopyObject().(*ShipV2)
	ship.Status.Size = fmt.Sprintf("%d oars for %d", ship.Spec.Drive.Oars, len(ship.Spec.Crew))
	return ctrl.Result{}, s.Status().Patch(ctx, ship, client.MergeFrom(before))
}
