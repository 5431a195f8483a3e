package bucket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"

	"github.com/minio/minio-go/v7"
)

// explain makes one line of an error of the library, which ends in the fix where one is known. action is the right that
// the request takes.
func (b *Bucket) explain(action string, err error) error {
	keys := fmt.Sprintf("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or %s-credentials FILE", b.flags)
	var answer minio.ErrorResponse
	var asked *url.Error
	switch {
	case err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, errNoKey):
		return fmt.Errorf("%w: give %s", err, keys)
	case errors.As(err, &asked): // its URL says nothing that the address of the bucket does not
		return fmt.Errorf("it cannot be reached: %w", asked.Err)
	case !errors.As(err, &answer):
		return fmt.Errorf("it cannot be reached: %w", err)
	}
	about := fmt.Sprintf("(%s, %d)", answer.Code, answer.StatusCode)
	switch answer.Code {
	case "InvalidAccessKeyId":
		return fmt.Errorf("the access key is not known there %s: correct %s", about, keys)
	case "SignatureDoesNotMatch":
		return fmt.Errorf("the secret is not that of the access key %s: correct %s", about, keys)
	case "ExpiredToken", "InvalidToken", "TokenRefreshRequired":
		return fmt.Errorf("the session token is over %s: get a new one, for AWS_SESSION_TOKEN or %s-credentials", about,
			b.flags)
	case "NoSuchBucket":
		return fmt.Errorf("the bucket %q is not there %s: make it, or correct its name", b.name, about)
	case "NoSuchKey":
		return fmt.Errorf("%s: %w", answer.Key, fs.ErrNotExist)
	case "AccessDenied", "AllAccessDisabled":
		return fmt.Errorf("the key has no right to do so %s: allow it %s in %s", about, action, b.String())
	case "RequestTimeTooSkewed":
		return fmt.Errorf("the clock of this host is wrong by 15 minutes or more %s: set it, see timedatectl", about)
	case "AuthorizationHeaderMalformed", "PermanentRedirect", "TemporaryRedirect", "InvalidRegion":
		return fmt.Errorf("the bucket is in another region, %q %s: give it in AWS_REGION or %s-region", answer.Region,
			about, b.flags)
	case "NotImplemented":
		return fmt.Errorf("it does not know this request %s: use a server that knows If-None-Match", about)
	}
	return fmt.Errorf("it says %.200q %s", answer.Message, about)
}
