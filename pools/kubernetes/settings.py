"""What a profile says of a pool of type `kubernetes`."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from artifacts_schema.config import Config, MemorySize


class KubernetesSettings(Config):
    """Where and how pods run; names are those of the cluster's own objects."""

    image: str = Field(description="Image with this Ingot, as `registry/ingot:0.1`.")
    namespace: str = Field(default="default", description="Namespace of all objects.")
    context: str | None = Field(
        default=None, description="Context of the kubeconfig; the current one if none."
    )
    python: str = Field(default="python", description="Python inside the image.")
    claim: str | None = Field(
        default=None,
        description="Volume claim (ReadWriteMany) that holds the store; a bucket needs none.",
    )
    mount: str | None = Field(
        default=None, description="Folder at which the claim is mounted; the store lies below it."
    )
    environment: dict[str, str] = Field(
        default_factory=dict, description="Variables of the pods. No secrets: manifests show them."
    )
    secrets: tuple[str, ...] = Field(
        default=(), description="Secrets whose keys become variables, as credentials of a bucket."
    )
    service_account: str | None = Field(default=None, description="Service account of the pods.")
    node_selector: dict[str, str] = Field(
        default_factory=dict, description="Labels that a node must have."
    )
    tolerations: tuple[dict[str, Any], ...] = Field(
        default=(), description="Tolerations, as Kubernetes writes them."
    )
    gpu_resource: str = Field(default="nvidia.com/gpu", description="Name of the resource of GPUs.")
    shared_memory: MemorySize = Field(
        default="8 GB", description="Size of /dev/shm, which NCCL and workers use."
    )
    stop_seconds: float = Field(
        default=300.0, gt=0, description="Grace of a pod that is to save and end."
    )
    poll_seconds: float = Field(
        default=10.0, gt=0, description="Seconds between two questions to the API about all jobs."
    )
