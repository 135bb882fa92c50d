// Operators as users write them with controller-runtime, for the tests of the server.
//
// `operator KUBECONFIG podcount` is what kubebuilder's first steps lead to: podcount.go.
//
// `operator KUBECONFIG ships PORT FOLDER` serves the webhooks of a resource: ship.go.
//
// `operator KUBECONFIG IDENTITY` is larger.
// Whoever leads makes a Deployment for every ConfigMap of the namespace default that has the label `operator: serve`, with
// the image and the replicas that its data names, keeps it so, and writes onto the ConfigMap how many of its pods are
// available and who says so. A ConfigMap that goes is held until a farewell has been written. It prints a line when it
// begins to lead.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

const (
	namespace = "default"
	finalizer = "operator.example/farewell"
	available = "operator.example/available"
	toldBy    = "operator.example/told-by"
)

func main() {
	ctrl.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	check(err)
	if os.Args[2] == "podcount" {
		countPods(config)
		return
	}
	if os.Args[2] == "ships" {
		serveShips(config)
		return
	}
	lease, renew, retry := 12*time.Second, 10*time.Second, time.Second
	manager, err := ctrl.NewManager(config, ctrl.Options{
		LeaderElection:          true,
		LeaderElectionID:        "operator",
		LeaderElectionNamespace: namespace,
		LeaseDuration:           &lease,
		RenewDeadline:           &renew,
		RetryPeriod:             &retry,
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		Cache:                   cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
	})
	check(err)
	serving, err := predicate.LabelSelectorPredicate(metav1.LabelSelector{MatchLabels: map[string]string{"operator": "serve"}})
	check(err)
	check(ctrl.NewControllerManagedBy(manager).
		For(&corev1.ConfigMap{}, builder.WithPredicates(serving)).
		Owns(&appsv1.Deployment{}).
		Complete(&operator{Client: manager.GetClient(), identity: os.Args[2]}))
	go func() {
		<-manager.Elected()
		fmt.Println("leads")
	}()
	check(manager.Start(ctrl.SetupSignalHandler()))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type operator struct {
	client.Client
	identity string
}

func (o *operator) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	wish := &corev1.ConfigMap{}
	if err := o.Get(ctx, request.NamespacedName, wish); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !wish.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, o.leave(ctx, wish)
	}
	if controllerutil.AddFinalizer(wish, finalizer) {
		return ctrl.Result{}, o.Update(ctx, wish)
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: wish.Namespace, Name: wish.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, o.Client, deployment, func() error {
		return o.shape(wish, deployment)
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	before := wish.DeepCopy()
	if wish.Annotations == nil {
		wish.Annotations = map[string]string{}
	}
	wish.Annotations[available] = strconv.Itoa(int(deployment.Status.AvailableReplicas))
	wish.Annotations[toldBy] = o.identity
	return ctrl.Result{}, o.Patch(ctx, wish, client.MergeFrom(before))
}

func (o *operator) shape(wish *corev1.ConfigMap, deployment *appsv1.Deployment) error {
	replicas, err := strconv.ParseInt(wish.Data["replicas"], 10, 32)
	if err != nil {
		return err
	}
	wanted, labels := int32(replicas), map[string]string{"served": wish.Name}
	deployment.Spec.Replicas = &wanted
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	deployment.Spec.Template.Labels = labels
	if len(deployment.Spec.Template.Spec.Containers) == 0 {
		deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c"}}
	}
	deployment.Spec.Template.Spec.Containers[0].Image = wish.Data["image"]
	return controllerutil.SetControllerReference(wish, deployment, o.Scheme())
}

// Takes leave of a ConfigMap that goes: a farewell first, then its finalizer.
func (o *operator) leave(ctx context.Context, wish *corev1.ConfigMap) error {
	if !controllerutil.ContainsFinalizer(wish, finalizer) {
		return nil
	}
	farewell := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: wish.Namespace, Name: "farewell-" + wish.Name},
		Data:       map[string]string{"by": o.identity},
	}
	if err := o.Create(ctx, farewell); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	controllerutil.RemoveFinalizer(wish, finalizer)
	return o.Update(ctx, wish)
}
